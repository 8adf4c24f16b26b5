"""Visualization of a part of a memory: an intermediate form read from the store, and a renderer per format."""

from graphmem.visualize.formats import FORMATS, PictureFormat, render
from graphmem.visualize.picture import Group, Link, Node, Picture, Source, read_picture

__all__ = ["FORMATS", "Group", "Link", "Node", "Picture", "PictureFormat", "Source", "read_picture", "render"]
