"""What the widgets share; a widget imports from here and from no other widget."""
