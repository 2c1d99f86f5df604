package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
	"github.com/leasehold-dev/leasehold/server/settings"
)

const settingHeader = `# Settings

` + generated + `The settings of the commands that run until they are stopped. A flag overrides the environment variable, the variable
overrides the key of the YAML file in ` + "`--config` or `LEASEHOLD_CONFIG`" + `, and the key overrides the default. A list is
comma-separated in a flag or variable, and a YAML list in the file. Secrets have no flag, because other users can read
command lines. Flags without a variable are flags only. Unknown variables and keys are errors. All commands can share one
file. [Commands](cli.md) has the flags of the other commands.
`

// longRunning are the commands that run until they are stopped.
func longRunning() [][]string {
	return [][]string{{"manager", "run"}, {"gateway"}, {"agent"}, {"flease", "run"}}
}

// settingReference returns a table of settings for each long-running command.
func settingReference() string {
	var out strings.Builder
	out.WriteString(settingHeader)
	for _, path := range longRunning() {
		cmd, _, err := rootcmd.New().Find(path)
		if err != nil {
			panic(err) // the test finds a renamed command
		}
		out.WriteString("\n## " + cmd.CommandPath() + "\n\n")
		out.WriteString(row("flag", "variable", "YAML key", "default", "meaning") + "|---|---|---|---|---|\n")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { out.WriteString(setting(f)) })
	}
	return out.String()
}

func setting(f *pflag.Flag) string {
	if f.Hidden && !cli.IsSetting(f) || f.Name == "help" {
		return ""
	}
	argument, meaning := pflag.UnquoteUsage(f)
	flag := "`--" + strings.TrimSpace(f.Name+" "+argument) + "`"
	if f.Shorthand != "" {
		flag = "`-" + f.Shorthand + "`, " + flag
	}
	variable, key := "", ""
	switch {
	case cli.IsSetting(f):
		variable, key = settings.Variable(f.Name), f.Name
	case f.Name == settings.FileFlag:
		variable = settings.Variable(f.Name)
	}
	value := f.DefValue
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",")
	}
	if strings.Contains(meaning, "(default") {
		value = "" // the zero value stands for that default
	}
	if f.Hidden {
		flag, value, meaning = "", "", "secret"
	}
	return row(flag, code(variable), code(key), code(value), meaning)
}
