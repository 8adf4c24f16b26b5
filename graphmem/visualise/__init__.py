"""Pictures of a part of a memory: one intermediate form, read from the store, and a renderer for each format."""

from graphmem.visualise.picture import Group, Link, Node, Picture, Source
from graphmem.visualise.read import read_picture
from graphmem.visualise.render import FORMATS, PictureFormat, render

__all__ = ["FORMATS", "Group", "Link", "Node", "Picture", "PictureFormat", "Source", "read_picture", "render"]
