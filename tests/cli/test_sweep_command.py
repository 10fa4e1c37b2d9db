from pathlib import Path


def test_the_rows_of_a_sweep_are_told_apart_by_scenario_learner_and_settings(cndpm):
    settings = '[[settings]]\n[[settings]]\nname = "slow"\nset = ["learner.learning_rate=0.001"]\n'
    scenarios = 'scenarios = ["split-digits", "iid-split-digits"]\nlearners = ["finetune"]\n'
    Path("mine.toml").write_text(scenarios + 'set = ["scenario.fraction=0.05", "run.evaluations=1"]\n' + settings)
    outcome = cndpm("sweep", "mine.toml", "--quiet", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    names = [line.split()[0] for line in outcome.out.splitlines() if "digits/" in line]
    scenarios = ("split-digits", "iid-split-digits")
    assert names == [f"{scenario}/{run}" for scenario in scenarios for run in ("finetune", "finetune-slow")]
