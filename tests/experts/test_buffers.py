"""Buffers are used again, and never by two at a time."""

import threading

import torch

from cndpm.experts.chunks import borrow, give_back

LIKE = torch.zeros(1)


def test_what_was_given_back_is_lent_again_in_another_shape():
    lent = borrow((101, 103), LIKE)
    address = lent.data_ptr()
    give_back(lent)
    assert borrow((103, 101), LIKE).data_ptr() == address


def test_two_borrowers_never_share_memory():
    give_back(borrow((64,), LIKE))
    one, two = borrow((64,), LIKE), borrow((64,), LIKE)
    one.fill_(1.0)
    two.fill_(2.0)
    assert one.eq(1.0).all()


def test_a_view_of_what_was_lent_gives_back_the_whole():
    lent = borrow((70, 71), LIKE)
    address = lent.data_ptr()
    give_back(lent[3:5])
    assert borrow((70, 71), LIKE).data_ptr() == address


def test_threads_do_not_share_buffers():
    lent = borrow((333, 7), LIKE)
    address = lent.data_ptr()
    give_back(lent)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(borrow((333, 7), LIKE).data_ptr()))
    thread.start()
    thread.join()
    assert seen != [address]
