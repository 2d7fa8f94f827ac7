"""All plots, one per file."""

from . import contest, gift, journey, lost, night_watch, quarrel, relay, rescue, workshop

PLOTS = tuple(m.PLOT for m in (contest, gift, journey, lost, night_watch, quarrel, relay, rescue, workshop))
