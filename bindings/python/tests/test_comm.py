# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks: threads with a barrier, and processes with a store."""
import subprocess
import sys
import threading

import numpy as np
import pytest

import trine


def in_threads(ranks, life, **options):
    """What each rank's life returns, or the exception that it raised."""
    barrier, gathered, results = threading.Barrier(ranks), [None] * ranks, [None] * ranks

    def live(rank):
        def all_gather(mine):
            gathered[rank] = mine
            barrier.wait()
            all_of_them = list(gathered)
            barrier.wait()
            return all_of_them

        try:
            with trine.Comm(rank, ranks, all_gather, timeout=30, **options) as comm:
                results[rank] = life(rank, comm)
        except Exception as error:  # pylint: disable=broad-exception-caught
            results[rank] = error

    threads = [threading.Thread(target=live, args=(r,)) for r in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_calls():
    def life(rank, comm):
        x = np.full((2, 5), rank + 1, np.float32)
        rows = np.arange(12, dtype=np.float32).reshape(3, 4) + 100 * rank
        assert (comm.rank, comm.ranks) == (rank, 3)
        assert (trine.all_reduce(x, comm=comm) == np.full((2, 5), 6)).all()
        assert (trine.all_reduce(x, comm=comm, kind="max") == 3).all()
        assert (trine.all_gather(x.reshape(-1), comm=comm) == np.repeat([[1], [2], [3]], 10, axis=1)).all()
        assert (trine.reduce_scatter(rows, comm=comm) == 3 * (np.arange(4) + 4 * rank) + 300).all()
        assert (trine.all_to_all(rows, comm=comm)[:, 0] == 4 * rank + np.array([0, 100, 200])).all()
        trine.broadcast(x, comm=comm, root=1, out=x)
        assert (x == 2).all()
        return "good"

    assert in_threads(3, life, staging_bytes=4096) == ["good"] * 3


def test_all_ranks_at_once():
    x = np.arange(12, dtype=np.float64).reshape(3, 4)
    assert (trine.all_reduce(x) == np.tile(x.sum(axis=0), (3, 1))).all()
    assert (trine.broadcast(x, root=2) == x[2]).all()
    assert trine.all_gather(x).shape == (3, 3, 4)


def test_others_are_told():
    def life(rank, comm):
        return trine.all_reduce(np.zeros(4 + rank, np.float32), comm=comm)

    errors = in_threads(2, life)
    assert all(isinstance(e, trine.CommError) and "n = " in str(e) for e in errors), errors

    def odd(rank, comm):
        return trine.all_reduce(np.zeros(4, "f4" if rank else "i4"), comm=comm)

    errors = in_threads(2, odd)
    assert isinstance(errors[0], trine.ArgumentError) and isinstance(errors[1], trine.CommError), errors
    assert "rank 0 was refused: all_reduce: no such combination of types: x is i32" in str(errors[1])


def test_mistakes():
    x = np.zeros(3, np.float32)
    with pytest.raises(TypeError, match="must be a trine.Comm"):
        trine.all_reduce(x, comm=5)
    with pytest.raises(TypeError, match="each of 1 ranks"):
        trine.Comm(0, 1, lambda mine: [mine, mine])
    with pytest.raises(ZeroDivisionError):
        trine.Comm(0, 1, lambda mine: 1 / 0)
    with pytest.raises(trine.ArgumentError, match="rank is 1"):
        trine.Comm(1, 1, lambda mine: [mine])
    with pytest.raises(trine.ArgumentError, match="no device"):
        trine.Comm(0, 1, lambda mine: [mine], device="abacus")
    comm = trine.Comm(0, 1, lambda mine: [mine])
    assert (trine.all_reduce(x + 1, comm=comm) == 1).all()
    comm.abort()
    with pytest.raises(trine.CommError, match="aborted"):
        trine.all_reduce(x, comm=comm)
    comm.close()
    assert comm.rank == -1
    with pytest.raises(trine.ArgumentError, match="closed"):
        trine.all_reduce(x, comm=comm)


PROCESS = """
import sys, torch, trine
rank, path = int(sys.argv[1]), sys.argv[2]
store = torch.distributed.FileStore(path, 2)
for _ in range(2):
    with trine.Comm(rank, 2, store, timeout=60) as comm:
        y = trine.all_reduce(torch.full((3, 1000), rank + 1.0), comm=comm)
        assert y.shape == (3, 1000) and (y == 3).all()
"""


def test_processes(tmp_path):
    pytest.importorskip("torch")
    ranks = [subprocess.Popen([sys.executable, "-c", PROCESS, str(r), str(tmp_path / "store")]) for r in range(2)]
    assert [r.wait(timeout=120) for r in ranks] == [0, 0]
