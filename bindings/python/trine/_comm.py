# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks."""
from . import _trine


def _through(store, rank, ranks):
    """What each rank puts into a store of torch.distributed, or one like it: set(), get() that waits, add()."""
    group = store.add(f"trine/{rank}", 1)  # all ranks open the same groups in the same order
    step = 0

    def all_gather(mine):
        nonlocal step
        step += 1
        store.set(f"trine/{group}/{step}/{rank}", mine)
        return [store.get(f"trine/{group}/{step}/{r}") for r in range(ranks)]

    return all_gather


class Comm(_trine._Comm):
    """A rank's part in a group of processes or threads, for the collective ops.

        comm = trine.Comm(rank, ranks, store)          # torch.distributed's TCPStore, FileStore or HashStore
        y = trine.all_reduce(x, comm=comm)             # on every rank, in the same order

    by: a store of torch.distributed, or a function that takes this rank's bytes and returns a sequence of those of all
    ranks, in their order. It is called on opening alone. All ranks open the group, with the same options: device, on
    which the arrays must be; timeout, the seconds that a call waits for another rank, by default 300; and
    staging_bytes, of the memory through which ranks read.

    What another rank does, or does not do, raises trine.CommError with its number. A communicator serves one thread at
    a time. It is closed by close(), at the end of a with, or with the object."""
    __slots__ = ()

    def __new__(cls, rank, ranks, by, *, device="cpu", timeout=0, staging_bytes=0):
        gather = by if callable(by) else _through(by, rank, ranks)
        return super().__new__(cls, rank, ranks, gather, device=str(device), timeout=timeout,
                               staging_bytes=staging_bytes)
