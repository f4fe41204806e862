"""EfficientNet-Lite (Tan and Le 2019, the form without squeeze-and-excitation), in torch.

The names of the parts are those of the published weights. Imported only where torch is needed.
"""

import math

from torch import Tensor, nn
from torch.nn import functional

# kernel, stride, expansion, channels out, repeats
STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
STEM, HEAD = 32, 1280


class SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow does: the output size depends on the stride alone."""

    def forward(self, maps: Tensor) -> Tensor:
        """Pad and convolve."""
        (kernel, _), (stride, _) = self.kernel_size, self.stride
        pads = []
        for size in (int(maps.shape[3]), int(maps.shape[2])):
            whole = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            pads += [whole // 2, whole - whole // 2]
        return super().forward(functional.pad(maps, pads) if any(pads) else maps)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class Block(nn.Module):
    """Widen, filter each channel, narrow; the input is added if the shape allows."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, widen: int) -> None:
        super().__init__()
        wide = inside * widen
        if widen > 1:
            self._expand_conv = SameConv(inside, wide, 1, bias=False)
            self._bn0 = _norm(wide)
        self._depthwise_conv = SameConv(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = _norm(wide)
        self._project_conv = SameConv(wide, outside, 1, bias=False)
        self._bn2 = _norm(outside)
        self._widens = widen > 1
        self._adds = stride == 1 and inside == outside

    def forward(self, maps: Tensor) -> Tensor:
        """Return the next maps."""
        wide = maps
        if self._widens:
            wide = functional.relu6(self._bn0(self._expand_conv(maps)))
        filtered = functional.relu6(self._bn1(self._depthwise_conv(wide)))
        narrow = self._bn2(self._project_conv(filtered))
        return narrow + maps if self._adds else narrow


class Lite(nn.Module):
    """The network before its classifier: pixels (n, height, width, 3) in, features (n, 1280)."""

    def __init__(self, width: float, depth: float) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, STEM, 3, 2, bias=False)
        self._bn0 = _norm(STEM)
        blocks: list[nn.Module] = []
        inside = STEM
        for i, (kernel, stride, widen, channels, repeats) in enumerate(STAGES):
            outside = _rounded(channels * width)
            ends = i in {0, len(STAGES) - 1}
            for repeat in range(repeats if ends else math.ceil(repeats * depth)):
                blocks.append(Block(inside, outside, kernel, 1 if repeat else stride, widen))
                inside = outside
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(inside, HEAD, 1, bias=False)
        self._bn1 = _norm(HEAD)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return features."""
        maps = (pixels.permute(0, 3, 1, 2).to(self._conv_stem.weight.dtype) - 127) / 128
        maps = functional.relu6(self._bn0(self._conv_stem(maps)))
        for block in self._blocks:
            maps = block(maps)
        return functional.relu6(self._bn1(self._conv_head(maps))).mean((2, 3))


def _rounded(channels: float) -> int:
    """Round channels to a multiple of 8, at most a tenth smaller."""
    whole = max(8, int(channels + 4) // 8 * 8)
    return whole + 8 if whole < 0.9 * channels else whole
