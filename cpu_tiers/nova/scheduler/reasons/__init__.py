"""Why a server gets its host, or no host; imported only with the options for reasons."""
