package main

import (
	"fmt"
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
	switch c.Shell {
	case "fish":
		for path, ws := range words {
			condition := "__fish_use_subcommand"
			if path != "" {
				condition = "__fish_seen_subcommand_from " + lastWord(path)
			}
			for _, w := range ws {
				if flag, ok := strings.CutPrefix(w, "--"); ok {
					fmt.Printf("complete -c rendezvous -n '%s' -l %s\n", condition, flag)
				} else {
					fmt.Printf("complete -c rendezvous -f -n '%s' -a %s\n", condition, w)
				}
			}
		}
	default:
		if c.Shell == "zsh" {
			fmt.Println("autoload -U +X bashcompinit && bashcompinit")
		}
		fmt.Println("_rendezvous() {\n  local path=\"\" i\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"${COMP_WORDS[i]}\" in -*) ;; *) path=\"$path ${COMP_WORDS[i]}\" ;; esac\n  done\n  local words=\"\"\n  case \"${path# }\" in")
		for path, ws := range words {
			pattern := `"` + path + `"`
			if path != "" {
				pattern += `|"` + path + ` "*`
			}
			fmt.Printf("    %s) words=\"%s\" ;;\n", pattern, strings.Join(ws, " "))
		}
		fmt.Println("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _rendezvous rendezvous")
	}
	return nil
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
