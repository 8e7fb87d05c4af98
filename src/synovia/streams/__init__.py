"""Sources and sinks of live motion: clips, VMC and JSON over UDP, standard streams, CSV."""

from synovia.retargeting.live.landmarks import LandmarkBody
from synovia.streams.addresses import open_sink, open_source
from synovia.streams.base import Sample, Sink, Source
from synovia.streams.clip import ClipSource, CsvSink
from synovia.streams.lines import JsonSink, JsonSource
from synovia.streams.loop import Run, play
from synovia.streams.vmc import VmcSink, VmcSource

__all__ = [
    "ClipSource",
    "CsvSink",
    "JsonSink",
    "JsonSource",
    "LandmarkBody",
    "Run",
    "Sample",
    "Sink",
    "Source",
    "VmcSink",
    "VmcSource",
    "open_sink",
    "open_source",
    "play",
]
