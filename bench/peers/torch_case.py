# SPDX-License-Identifier: Apache-2.0
"""What the peers in torch_ops.py and torch_layers.py share: a case, and what of it they can do."""


class Unsupported(Exception):
    """PyTorch has no operator that does the same work."""


def parse(case):
    """'name: T=bf16 n=4096 +weight' as name, settings and optional tensors."""
    name, _, words = case.partition(":")
    words = words.split()
    return name, dict(w.split("=") for w in words if w[0] not in "+-"), {w[1:] for w in words if w[0] == "+"}


def allow(settings, given, names, tensors=()):
    for word in list(settings) + list(given):
        if word not in names and word not in tensors:
            raise Unsupported(word)


class Gradient:
    """What a loss and its gradient by the first argument take: of the two only the loss is given to torch.compile,
    which makes the other."""

    def __init__(self, torch, loss):
        self.torch, self.loss = torch, loss

    def compiled(self):
        return Gradient(self.torch, self.torch.compile(self.loss))

    def __call__(self, x, *rest):
        with self.torch.enable_grad():
            x.requires_grad_(True)
            x.grad = None
            self.loss(x, *rest).backward()


class Backward:
    """The gradients by all arguments of floating point alone; the graphs are made at the first call."""

    def __init__(self, torch, function):
        self.torch, self.function, self.graphs = torch, function, {}

    def __call__(self, *tensors):
        if tensors[0].data_ptr() not in self.graphs:
            with self.torch.enable_grad():
                leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
                y = self.function(*leaves)
                wanted = [t for t in leaves if t.requires_grad]
            self.graphs[tensors[0].data_ptr()] = y, wanted, self.torch.ones_like(y)
        y, wanted, dy = self.graphs[tensors[0].data_ptr()]
        self.torch.autograd.grad(y, wanted, dy, retain_graph=True)
