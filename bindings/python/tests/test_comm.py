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
        a, b = rows.reshape(3, 1, 4) - 100 * rank, np.full((4, 2), rank + 1, np.float32)
        assert (trine.matmul_reduce_scatter(a, b, comm=comm) == 6 * a[rank].sum()).all()
        assert (trine.matmul_all_reduce(a[1], b, comm=comm) == 6 * a[1].sum()).all()
        gathered = trine.all_gather_matmul(a[rank], b, comm=comm)
        assert (gathered == (rank + 1) * a.sum(axis=2, keepdims=True)).all() and gathered.shape == (3, 1, 2)
        return "good"

    assert in_threads(3, life, staging_bytes=4096) == ["good"] * 3


def test_experts():
    """Each of 3 ranks has 2 experts, which add their number times 100; the last token has none."""
    def life(rank, comm):
        x = (np.arange(20, dtype=np.float32) + 1000 * rank).reshape(5, 4)
        experts = np.array([[0, 5], [1, 2], [3, 0], [4, 3], [-1, 6]], np.int32)
        y, counts, offsets, places, needed = trine.moe_dispatch(x, experts, e=2, p=9, needed=True, comm=comm)
        assert counts.tolist() == [[6, 3], [3, 6], [3, 3]][rank] and needed.tolist() == [9, 9, 6]
        for j in range(2):
            y[offsets[j]:offsets[j + 1]] += 100 * (2 * rank + j)
        weights = np.full((5, 2), 0.5, np.float32)
        back = trine.moe_collect(y, places, weights=weights, comm=comm)
        shares = 50 * np.where(experts < 6, experts, 0).sum(axis=1)
        assert (back[:4] == x[:4] + shares[:4, None]).all() and not back[4].any()
        return "good"

    assert in_threads(3, life) == ["good"] * 3


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


# A rank that meets the others by a store, and compares with PyTorch's own collectives: sums of small whole numbers, so
# that no order of them matters.
PROCESS = """
import sys, time, pathlib, torch, trine
import torch.distributed as dist
rank, ranks, kind, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
if kind == "file":
    store = dist.FileStore(str(path / "store"), ranks)
elif kind == "tcp" and rank == 0:
    store = dist.TCPStore("localhost", 0, ranks, is_master=True, wait_for_workers=False)
    (path / "written").write_text(str(store.port))
    (path / "written").rename(path / "port")
elif kind == "tcp":
    while not (path / "port").exists():
        time.sleep(0.01)
    store = dist.TCPStore("localhost", int((path / "port").read_text()), ranks, wait_for_workers=False)
elif kind == "env":
    store, rank, ranks = next(dist.rendezvous("env://"))
dist.init_process_group("gloo", store=dist.PrefixStore("gloo", store), rank=rank, world_size=ranks)
x = torch.randint(-99, 99, (3, 1000), generator=torch.Generator().manual_seed(rank)).float()
rows = torch.randint(-99, 99, (ranks, 500), generator=torch.Generator().manual_seed(9 + rank)).float()
for _ in range(2):
    with trine.Comm(rank, ranks, store, timeout=60) as comm:
        assert (comm.rank, comm.ranks) == (rank, ranks)
        for kind, op in ("sum", dist.ReduceOp.SUM), ("max", dist.ReduceOp.MAX):
            expected = x.clone()
            dist.all_reduce(expected, op)
            assert torch.equal(trine.all_reduce(x, comm=comm, kind=kind), expected)
        expected = [torch.empty_like(x) for _ in range(ranks)]
        dist.all_gather(expected, x)
        assert torch.equal(trine.all_gather(x.reshape(-1), comm=comm), torch.stack(expected).reshape(ranks, -1))
        summed = rows.clone()
        dist.all_reduce(summed)
        assert torch.equal(trine.reduce_scatter(rows, comm=comm), summed[rank])
        expected = torch.empty_like(rows)
        dist.all_to_all_single(expected, rows)
        assert torch.equal(trine.all_to_all(rows, comm=comm), expected)
        expected = x.clone()
        dist.broadcast(expected, 1)
        assert torch.equal(trine.broadcast(x, comm=comm, root=1), expected)
dist.barrier()  # rank 0 has the store
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind", ["file", "tcp"])
def test_processes(tmp_path, kind):
    pytest.importorskip("torch")
    ranks = [subprocess.Popen([sys.executable, "-c", PROCESS, str(r), "4", kind, str(tmp_path)]) for r in range(4)]
    assert [r.wait(timeout=240) for r in ranks] == [0, 0, 0, 0]


def test_torchrun(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "rank.py").write_text(PROCESS)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    subprocess.run([*run, str(tmp_path / "rank.py"), "0", "0", "env", str(tmp_path)], check=True, timeout=240)
