"""A plot for the dark theme: the same picture on the page's dark ground, each colour still known by its hue.

The lightness is turned over in OKLab (Ottosson, "A perceptual color space for image processing", 2020): paper becomes
the page's dark ground and ink its light ink. Hues stay, so that the orange line of the text is orange here too.
CSS's `invert() hue-rotate()` would do it without a second file, but it turns hues by a linear matrix that makes blue
violet, and its white paper becomes black instead of the page's ground. The conversion is done on arrays: coloraide does
it colour by colour, and brings a colour into the screen's range in 0.2 ms.
"""

import numpy as np

PAPER, INK = (0x14, 0x18, 0x1E), (0xE6, 0xE9, 0xEE)  # --mp-paper and --mp-ink of the dark theme (tokens.css)
# This share of its chroma is added to a colour's lightness: with less, lines fall below a contrast of 4.5; with more,
# colours come so close in lightness that eyes without M cones take float32's grey for E2M1's pink.
LIFT = 0.3
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def to_oklab(rgb):
    """OKLab of sRGB bytes: [..., 3] uint8 -> [..., 3] float64, lightness from 0 to 1 first."""
    encoded = np.asarray(rgb, float) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ TO_LMS.T) @ TO_LAB.T


def to_linear(lab):
    """Linear sRGB of OKLab; values outside 0 to 1 cannot be shown."""
    return (lab @ np.linalg.inv(TO_LAB).T) ** 3 @ np.linalg.inv(TO_LMS).T


def to_bytes(linear):
    """The nearest sRGB bytes of linear sRGB."""
    linear = np.clip(linear, 0, 1)
    encoded = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(encoded * 255).astype(np.uint8)


def for_the_dark(colors):
    """The colours that stand for `colors` on the dark theme: [n, 3] uint8 -> [n, 3] uint8.

    The rule is affine in lightness and chroma, so that the soft edge of a line stays a blend of line and ground.
    A colour that the screen cannot show loses chroma until it can.
    """
    lab, paper, ink = to_oklab(colors), to_oklab(PAPER), to_oklab(INK)
    depth = 1 - lab[:, :1]  # 0 is paper, 1 is black
    chroma = np.hypot(lab[:, 1:2], lab[:, 2:])
    ground = paper + (ink - paper) * np.minimum(depth / (1 - to_oklab((0x1C, 0x1F, 0x24))[0]), 1)
    ground[:, :1] = np.minimum(ground[:, :1] + LIFT * chroma, 1)
    best = to_linear(ground)
    for share in np.linspace(0, 1, 41)[1:]:
        tried = to_linear(ground + share * np.hstack([np.zeros_like(depth), lab[:, 1:]]))
        shown = np.all((tried > -1e-4) & (tried < 1 + 1e-4), axis=1, keepdims=True)
        best = np.where(shown, tried, best)
    return to_bytes(best)


def is_on_paper(pixels):
    """Whether a picture's corners are white, as those of the book's plots are: [h, w, 3] uint8."""
    return bool(np.all(pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 255))


def dark_plot(pixels):
    """The picture in the dark theme's colours: [h, w, 3] uint8 -> [h, w, 3] uint8."""
    flat = pixels.reshape(-1, 3).astype(np.uint32)
    codes, places = np.unique(flat @ np.array([65536, 256, 1], np.uint32), return_inverse=True)
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    return for_the_dark(colors)[places].reshape(pixels.shape)
