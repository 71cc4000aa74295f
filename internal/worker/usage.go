package worker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Refuse tells what is wrong with a command line, in a line and another that says where help is, and exits. The help itself would bury what was wrong.
func Refuse(k *kong.Kong, err error) {
	name := k.Model.Name
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if command := wrong.Context.Selected(); command != nil {
			name = command.FullPath()
		}
	}
	k.Errorf("%s", err)
	fmt.Fprintf(k.Stderr, "see %s --help\n", name)
	Exit(ExitUsage)
}

// Explain is the help of a flag or argument, with its default where nothing else shows that, and its environment variable.
func Explain(v *kong.Value) string {
	var more []string
	if v.HasDefault && v.Default != "" && v.Flag != nil && v.Flag.PlaceHolder != "" {
		more = append(more, "default "+v.Default)
	}
	for _, env := range v.Tag.Envs {
		more = append(more, "$"+env)
	}
	if len(more) == 0 {
		return v.Help
	}
	return fmt.Sprintf("%s (%s).", strings.TrimSuffix(v.Help, "."), strings.Join(more, ", "))
}
