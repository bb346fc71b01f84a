# SPDX-License-Identifier: Apache-2.0
"""The optimizer and clipping of trine.torch against PyTorch's own in float64, and against calls one by one."""
import copy

import pytest

torch = pytest.importorskip("torch")
trine_torch = pytest.importorskip("trine.torch")

import trine  # noqa: E402

# Where there is a GPU that both can use, it is tried too.
DEVICES = ["cpu"] + ["cuda"] * (torch.cuda.is_available() and any(d["name"].startswith("cuda") for d in
                                                                  trine.devices()))
SHAPES = [(), (1,), (0,), (7,), (3, 5), (64, 33), (2, 3, 4, 5), (300, 301)]
ROUNDING = {torch.float32: 2**-24, torch.bfloat16: 2**-8, torch.float16: 2**-11}


def parameters(dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(shape, generator=generator).to(device, dtype) for shape in SHAPES]
    made.append(torch.randn(40, 30, generator=generator).to(device, dtype).t())  # lies another way
    return [torch.nn.Parameter(p) for p in made]


def set_gradients(params, step, scale=1.0):
    generator = torch.Generator().manual_seed(100 + step)
    for p in params:
        p.grad = (scale * torch.randn(p.shape, generator=generator)).to(p.device, p.dtype)


def groups(params):
    return [{"params": params[::2], "weight_decay": 0.1}, {"params": params[1::2], "lr": 3e-3, "betas": (0.8, 0.95)}]


def in_double(params):
    return [torch.nn.Parameter(p.detach().double()) for p in params]


def assert_near(found, wanted, rounding):
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a.detach().double(), b.detach(), rtol=8 * rounding, atol=8 * rounding)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_steps(dtype):
    params = parameters(dtype)
    optimizer = trine_torch.AdamW(groups(params), lr=1e-2)
    for step in range(4):
        double = in_double(params)  # each step by itself, from what the one before has rounded
        reference = torch.optim.AdamW(groups(double), lr=1e-2, foreach=False)
        for p, d in zip(params, double):
            if p in optimizer.state:
                reference.state[d] = {n: v.double() for n, v in optimizer.state[p].items()}
        set_gradients(params, step)
        params[3].grad = None if step == 1 else params[3].grad
        for p, d in zip(params, double):
            d.grad = None if p.grad is None else p.grad.double()
        optimizer.step()
        reference.step()
        assert_near(params, double, ROUNDING[dtype])
        for name in ("exp_avg", "exp_avg_sq"):
            pairs = [(optimizer.state[p][name], reference.state[d][name]) for p, d in zip(params, double)]
            assert_near(*zip(*pairs), ROUNDING[dtype])
        assert [int(optimizer.state[p]["step"]) for p in params] == \
            [step + (p is not params[3] or step == 0) for p in params]


@pytest.mark.parametrize("device", DEVICES)
def test_the_bits_of_single_calls(device):
    params, alone = parameters(device=device), parameters(device=device)
    optimizer = trine_torch.AdamW(params, lr=1e-2, weight_decay=0.1)
    set_gradients(params, 0)
    optimizer.step()
    for p, q in zip(params, alone):
        flat = q.detach().t() if q.dim() == 2 else q.detach().view(-1)
        grad = p.grad.t() if q.dim() == 2 else p.grad.view(-1)
        flat, grad = flat.contiguous().view(-1), grad.contiguous().view(-1)
        trine.adamw(flat, grad, torch.zeros_like(flat), torch.zeros_like(flat), lr=1e-2, weight_decay=0.1, step=1)
        assert torch.equal(flat, (p.detach().t() if q.dim() == 2 else p.detach()).reshape(-1))


def test_state_goes_both_ways():
    """A run that begins with one optimizer and goes on with the other."""
    def run(first, second):
        params = parameters()
        optimizer = first(groups(params), lr=1e-2)
        for step in range(3):
            set_gradients(params, step)
            optimizer.step()
        kept = copy.deepcopy(optimizer.state_dict())
        optimizer = second(groups(params), lr=1.0)
        optimizer.load_state_dict(kept)
        for step in range(3, 6):
            set_gradients(params, step)
            optimizer.step()
        return params, optimizer.state_dict()

    ours, theirs = trine_torch.AdamW, torch.optim.AdamW
    wanted, state = run(theirs, theirs)
    for first, second in ((theirs, ours), (ours, theirs), (ours, ours)):
        params, found = run(first, second)
        for p, q in zip(params, wanted):
            torch.testing.assert_close(p, q)
        assert found["param_groups"] == state["param_groups"]
        for mine, other in zip(found["state"].values(), state["state"].values()):
            assert mine.keys() == other.keys() and mine["step"] == other["step"] == 6
            for name in mine:
                torch.testing.assert_close(mine[name], other[name])


def test_schedulers_and_closures():
    params = parameters()
    optimizer = trine_torch.AdamW(params, lr=0.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0 if step else 1.0)

    def closure():
        optimizer.zero_grad()
        loss = sum((p**2).sum() for p in params)
        loss.backward()
        return loss
    loss = optimizer.step(closure)
    assert optimizer.step(closure) < loss
    scheduler.step()
    before = [p.detach().clone() for p in params]
    optimizer.step(closure)  # at a rate of 0
    assert all(torch.equal(p, b) for p, b in zip(params, before))


def test_rate_in_a_tensor():
    params, other = parameters(), parameters()
    told, plain = trine_torch.AdamW(params, lr=torch.tensor(0.01)), trine_torch.AdamW(other, lr=0.01)
    for step in range(2):
        set_gradients(params, step)
        set_gradients(other, step)
        told.step()
        plain.step()
    assert all(torch.equal(p, q) for p, q in zip(params, other))


def test_grad_scaler():
    params, other = parameters(), parameters()
    scaled, plain = trine_torch.AdamW(params), trine_torch.AdamW(other)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(torch.ones(()))
    for step in range(3):
        set_gradients(params, step, 1024.0)
        set_gradients(other, step)
        scaler.step(scaled)
        plain.step()
        scaler.update(1024.0)
    assert all(torch.equal(p, q) for p, q in zip(params, other))
    set_gradients(params, 3)
    params[4].grad[0, 0] = float("inf")
    scaler.step(scaled)
    scaler.update()
    assert scaler.get_scale() == 512 and scaled.state[params[4]]["step"] == 3
    assert all(torch.equal(p, q) for p, q in zip(params, other))
    assert not hasattr(scaled, "found_inf")


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("max_norm", [0.5, 1e9, float("inf")])
def test_clipping(dtype, max_norm):
    params = parameters(dtype)
    set_gradients(params, 0)
    params[5].grad = params[5].grad[:, :1].expand(64, 33).clone().t().contiguous().t()  # dense, but transposed
    params[3].grad = torch.randn(14).to(dtype)[::2]  # with gaps
    params[1].grad = None
    double = in_double(params)
    for p, d in zip(params, double):
        d.grad = None if p.grad is None else p.grad.double()
    norm = torch.nn.utils.clip_grad_norm_(double, max_norm)
    coefficient = min(1.0, max_norm / norm.item())
    told, factor = trine_torch.clip_coefficient(params, max_norm)
    found = trine_torch.clip_grad_norm_(params, max_norm)
    assert found.shape == () and found == told and factor.shape == (1,)
    torch.testing.assert_close(found.double(), norm, rtol=2**-23, atol=0)
    torch.testing.assert_close(factor.double(), torch.tensor([coefficient]).double(), rtol=2**-23, atol=0)
    gradients = [(p.grad, d.grad) for p, d in zip(params, double) if p.grad is not None]
    assert_near(*zip(*gradients), ROUNDING[dtype])
    assert params[1].grad is None


@pytest.mark.parametrize("device", DEVICES)
def test_clipping_as_part_of_the_step(device):
    params, other = parameters(device=device), parameters(device=device)
    fused, apart = trine_torch.AdamW(params), trine_torch.AdamW(other)
    for step in range(2):
        set_gradients(params, step)
        set_gradients(other, step)
        norm, coefficient = trine_torch.clip_coefficient(params, 1.5)
        assert norm == trine_torch.clip_grad_norm_(other, 1.5) and norm > 1.5
        fused.step(grad_scale=coefficient)
        apart.step()
    assert all(torch.equal(p, q) for p, q in zip(params, other))


def test_clipping_of_little():
    assert trine_torch.clip_grad_norm_([], 1.0) == 0
    alone = torch.nn.Parameter(torch.ones(4))
    assert trine_torch.clip_grad_norm_(alone, 1.0) == 0
    alone.grad = torch.full((4,), 3.0)
    assert trine_torch.clip_grad_norm_(alone, 3.0) == 6 and torch.equal(alone.grad, torch.full((4,), 1.5))
    alone.grad[0] = float("inf")
    with pytest.raises(RuntimeError, match="the norm of the gradients is inf"):
        trine_torch.clip_grad_norm_(alone, 3.0, error_if_nonfinite=True)
    assert torch.equal(alone.grad[1:], torch.full((3,), 1.5))
    with pytest.raises(ValueError, match="norm_type is 1"):
        trine_torch.clip_grad_norm_(alone, 3.0, norm_type=1)


def test_what_is_refused():
    with pytest.raises(ValueError, match="a parameter is torch.float64"):
        trine_torch.AdamW([torch.nn.Parameter(torch.ones(2, dtype=torch.float64))])
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    optimizer = trine_torch.AdamW([p])
    optimizer.load_state_dict(torch.optim.AdamW([p], amsgrad=True).state_dict())
    with pytest.raises(ValueError, match="amsgrad is not there"):
        optimizer.step()
    gaps = torch.nn.Parameter(torch.ones(4)[::2])
    gaps.grad = torch.ones(2)
    with pytest.raises(ValueError, match="do not lie one behind the other"):
        trine_torch.AdamW([gaps]).step()
    p.grad = torch.ones(2).to_sparse()
    for refuses in (trine_torch.AdamW([p]).step, lambda: trine_torch.clip_grad_norm_(p, 1.0)):
        with pytest.raises(RuntimeError, match="gradients must be dense"):
            refuses()
    assert torch.equal(p, torch.ones(2))
