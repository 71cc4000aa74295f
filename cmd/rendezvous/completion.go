package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script that completes commands and flags, made from the command tree itself.
func (c *completionCmd) Run(k *kong.Kong) error {
	words := map[string][]string{}
	collect(k.Model.Node, "", words)
	paths := slices.Sorted(maps.Keys(words))
	slices.Reverse(paths) // a command before what it is a part of: the first that fits is taken
	switch c.Shell {
	case "fish":
		printFish(paths, words)
	case "zsh":
		fmt.Println("autoload -U +X bashcompinit && bashcompinit")
		printBash(paths, words)
	default:
		printBash(paths, words)
	}
	return nil
}

func printFish(paths []string, words map[string][]string) {
	for _, path := range paths {
		condition := "__fish_use_subcommand"
		if path != "" {
			condition = "__fish_seen_subcommand_from " + lastWord(path)
		}
		for _, w := range words[path] {
			if flag, ok := strings.CutPrefix(w, "--"); ok {
				fmt.Printf("complete -c rendezvous -n '%s' -l %s\n", condition, flag)
			} else {
				fmt.Printf("complete -c rendezvous -f -n '%s' -a %s\n", condition, w)
			}
		}
	}
}

func printBash(paths []string, words map[string][]string) {
	fmt.Print(`_rendezvous() {
  local line="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in -*) ;; *) line="$line ${COMP_WORDS[i]}" ;; esac
  done
  case "${line# }" in
`)
	for _, path := range paths {
		pattern := `"` + path + `"`
		if path != "" {
			pattern += `|"` + path + ` "*`
		}
		fmt.Printf("    %s) words=\"%s\" ;;\n", pattern, strings.Join(words[path], " "))
	}
	fmt.Print(`  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _rendezvous rendezvous
`)
}

// collect notes under each command's path what may follow it.
func collect(n *kong.Node, path string, into map[string][]string) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		into[path] = append(into[path], child.Name)
		collect(child, strings.TrimSpace(path+" "+child.Name), into)
	}
	for _, f := range n.Flags {
		if !f.Hidden {
			into[path] = append(into[path], "--"+f.Name)
		}
	}
}

func lastWord(path string) string { return path[strings.LastIndex(path, " ")+1:] }
