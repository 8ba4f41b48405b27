"""Our options on Nova's own configuration object."""

from types import ModuleType

import nova.conf

CONF = nova.conf.CONF


def register(module: ModuleType) -> None:
    """Add the options of one of our ``conf`` modules to ``nova.conf``.

    Safe to call again. Every option is read once, so that a bad value stops
    the service when it starts, and not request after request.

    :raises ConfigFileValueError: a value is malformed or not one of the choices.
    """
    CONF.register_opts(module.OPTIONS, group=module.GROUP)
    for option in module.OPTIONS:
        CONF[module.GROUP][option.name]
