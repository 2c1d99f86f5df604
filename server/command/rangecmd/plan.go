package rangecmd
