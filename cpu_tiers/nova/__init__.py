"""What an unmodified Nova loads: the only folder that imports Nova.

Nothing is installed when it is imported. A service installs the seams it
needs when it loads our class from nova.conf; see ``docs/house.rst``.
"""
