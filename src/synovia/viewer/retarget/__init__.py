"""The retarget page: a clip and its transfer to another body side by side, with a map and a rest pose to edit."""
