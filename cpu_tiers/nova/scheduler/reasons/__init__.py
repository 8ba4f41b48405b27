"""Why a server gets its host, or no host; the options for reasons import it."""
