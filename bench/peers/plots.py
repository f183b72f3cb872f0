"""The plots: SVG that is small, the same for the same figures, and readable by all."""

import contextlib
import pathlib
import textwrap

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (after the choice of the backend)

from .figures import number  # noqa: E402

# Okabe and Ito's colours: told apart with any colour vision.
OURS = "#0072B2"
OTHERS = ("#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
ERROR_BARS = {"ecolor": "0.25", "elinewidth": 0.8, "capsize": 2}
BAR_ROOM = 0.8
SUBTITLE_CHARACTERS_PER_INCH = 16


class Canvas:
    """Draws into a directory; every plot says where its figures are from."""

    def __init__(self, directory, subtitle):
        self._directory = pathlib.Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._subtitle = subtitle
        self._colors = {}
        matplotlib.rcParams.update({
            "svg.hashsalt": "timecached", "svg.fonttype": "none", "font.size": 9,
            "font.family": "sans-serif", "axes.spines.top": False,
            "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
            "grid.color": "0.9", "path.simplify": True})

    @contextlib.contextmanager
    def figure(self, name, title, columns=1, width=7.5, height=3.8):
        """Yields the axes, or a list of them if there are several columns. What has a
        label in them comes into one legend above them."""
        figure, axes = pyplot.subplots(1, columns, figsize=(width, height))
        try:
            self._colors = {}
            yield axes
            for one in figure.axes:
                one.minorticks_off()
            self._head(figure, title, width, height)
            # Without a date, the same figures give the same file.
            figure.savefig(self._directory / f"{name}.svg", metadata={"Date": None})
        finally:
            pyplot.close(figure)

    def _head(self, figure, title, width, height):
        """Title, where it is from, and the legend, from the top down."""
        subtitle = textwrap.wrap(self._subtitle, int(width * SUBTITLE_CHARACTERS_PER_INCH))
        inches = 0.08
        figure.text(0.01, 1 - inches / height, title, fontsize=11, va="top", weight="bold")
        inches += 0.25
        figure.text(0.01, 1 - inches / height, "\n".join(subtitle), fontsize=7, va="top",
                    color="0.35")
        inches += 0.14 * len(subtitle)
        shown = {}
        for axes in figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels()):
                shown.setdefault(label, handle)
        if len(shown) > 1:
            figure.legend(shown.values(), shown, loc="upper left", ncol=len(shown),
                          bbox_to_anchor=(0, 1 - inches / height), frameon=False)
            inches += 0.25
        figure.tight_layout(rect=(0, 0, 1, 1 - inches / height))

    def color(self, name):
        """The same for a name all over a figure; ours is blue in all of them."""
        if name not in self._colors:
            others = sum(color != OURS for color in self._colors.values())
            is_ours = name.startswith(("timecached", "one by one"))
            self._colors[name] = OURS if is_ours else OTHERS[others % len(OTHERS)]
        return self._colors[name]

    def bars(self, axes, labels, series, logarithmic=False):
        """Medians as bars from left to right, from least to greatest as a line.

        `series` has, for each name, a dict of positions in `labels` to Spreads. On a
        logarithmic scale they are dots: a bar's length would mean nothing.
        """
        thickness = BAR_ROOM / len(series)
        for i, (name, spreads) in enumerate(series.items()):
            offset = (i - (len(series) - 1) / 2) * thickness
            places = [place + offset for place in spreads]
            medians = [spread.median for spread in spreads.values()]
            errors = [[spread.median - spread.least for spread in spreads.values()],
                      [spread.greatest - spread.median for spread in spreads.values()]]
            if logarithmic:
                axes.errorbar(medians, places, xerr=errors, fmt="o", markersize=6,
                              color=self.color(name), label=name, **ERROR_BARS)
            else:
                axes.barh(places, medians, thickness * 0.92, color=self.color(name),
                          label=name, xerr=errors, error_kw=dict(ERROR_BARS))
            for place, spread in zip(places, spreads.values()):
                axes.annotate(number(spread.median), (spread.greatest, place), (5, 0),
                              textcoords="offset points", va="center", fontsize=7)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(False, axis="y")
        if logarithmic:
            axes.set_xscale("log")
        axes.margins(x=0.12)

    def curve(self, axes, points, label):
        """Medians over numbers, and a band from least to greatest."""
        if not points:
            return
        places = sorted(points)
        color = self.color(label)
        axes.plot(places, [points[place].median for place in places], "o-", color=color,
                  markersize=3, linewidth=1.3, label=label)
        axes.fill_between(places, [points[place].least for place in places],
                          [points[place].greatest for place in places], color=color,
                          alpha=0.15, linewidth=0)

    def wanted(self, axes, value, label):
        """A line at a bound of the bars."""
        axes.axvline(value, color="0.3", linestyle="--", linewidth=1, label=label)
