// waystation completion: a script for a shell, made from the tree of commands. While somebody types it asks only for the
// names of profiles, and it evaluates nothing of the line.

import type { Command, Option } from 'commander'
import type { OwnCommand } from '../spec.ts'

const scripts = { bash, zsh, fish }

export const completion: OwnCommand = {
  usage: 'completion <shell>',
  about: 'Print a completion script for a shell',
  examples: [
    'waystation completion bash > ~/.local/share/bash-completion/completions/waystation',
    'waystation completion zsh > ~/.zfunc/_waystation   # a folder of $fpath',
    'waystation completion fish > ~/.config/fish/completions/waystation.fish',
  ],
  choices: { shell: Object.keys(scripts) },
  run: (cli, { shell }, program) =>
    cli.out.document(scripts[shell as keyof typeof scripts](placesOf(program))),
}

const about_help = 'display help for command'

const profile_names = 'waystation profiles 2>/dev/null | cut -f1'

/** A command, where it stands in the tree, and what may follow there. */
interface Place {
  /** `/kv/get`; empty for the program itself. */
  at: string
  inner: { word: string; about: string }[]
  options: Option[]
  choices: readonly string[]
  takes_profile: boolean
}

function placesOf(program: Command): Place[] {
  const visit = (command: Command, at: string): Place[] => {
    const commands = command.createHelp().visibleCommands(command)
    const here: Place = {
      at,
      inner: commands.map((inner) => ({ word: inner.name(), about: inner.description() })),
      options: [...command.options, ...(command === program ? [] : program.options)],
      choices: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
      takes_profile: command.registeredArguments.some((argument) => argument.name() === 'profile'),
    }
    return [here, ...commands.flatMap((inner) => visit(inner, `${at}/${inner.name()}`))]
  }
  return visit(program, '')
}

/** Every option that takes a value, by its flags. */
function valuedFlags(places: Place[]): string[] {
  const valued = places.flatMap(({ options }) => options.filter(({ required }) => required))
  return [...new Set(valued.flatMap(({ short, long }) => [short, long].filter((flag) => flag !== undefined)))]
}

/** `/dlq/list:--status` and what it may be. */
function choicesOf(places: Place[]): [where: string, choices: readonly string[]][] {
  return places.flatMap(({ at, options }) =>
    options.flatMap(({ long, argChoices }): [string, readonly string[]][] =>
      argChoices ? [[`${at}:${long}`, argChoices]] : [],
    ),
  )
}

/** Long flags whose value is a path or the name of a profile. */
function flagsTaking(placeholder: '<path>' | '<profile>', places: Place[]): string[] {
  const found = places.flatMap(({ options }) => options.filter(({ flags }) => flags.endsWith(placeholder)))
  return [...new Set(found.map(({ long }) => long!))]
}

function placesOfProfiles(places: Place[]): string[] {
  return places.filter(({ takes_profile }) => takes_profile).map(({ at }) => at)
}

function flagsOf(options: readonly Option[]): string[] {
  return ['--help', ...options.flatMap(({ long }) => (long ? [long] : []))]
}

function bash(places: Place[]): string {
  const known = places.slice(1).map(({ at }) => at)
  return `# bash completion for waystation
_waystation() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= words= word i skip=
  COMPREPLY=()
  # To bash --status=failed is three words.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == = ]]; then continue; fi
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      ${valuedFlags(places).join('|')}) skip=1 ;;
      *) case $at/$word in ${known.join('|')}) at=$at/$word ;; esac ;;
    esac
  done
  if [[ -n $skip ]]; then
    case $prev in
      ${flagsTaking('<profile>', places).join('|')}) words=$(${profile_names}) ;;
      *) case $at:$prev in
${choicesOf(places)
  .map(([where, choices]) => `        ${where}) words='${choices.join(' ')}' ;;`)
  .join('\n')}
      esac ;;
    esac
  elif [[ $cur == -* ]]; then
    case $at in
${places.map(({ at, options }) => `      '${at}') words='${flagsOf(options).join(' ')}' ;;`).join('\n')}
    esac
  else
    case $at in
${places
  .filter(({ inner, choices }) => inner.length + choices.length > 0)
  .map(
    ({ at, inner, choices }) =>
      `      '${at}') words='${[...inner.map(({ word }) => word), ...choices].join(' ')}' ;;`,
  )
  .join('\n')}
    esac
    case $at in ${placesOfProfiles(places).join('|')}) words=$(${profile_names}) ;; esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
# Where nothing of ours fits, bash offers files.
complete -o default -F _waystation waystation`
}

function zsh(places: Place[]): string {
  const known = places.slice(1).map(({ at }) => at)
  const entries = (pairs: [word: string, about: string][]) =>
    pairs.map(([word, about]) => quoted(`${word}:${about}`)).join(' ')
  return `#compdef waystation
_waystation() {
  local at= word skip= prev=\${words[CURRENT-1]} i
  local -a list
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      (${valuedFlags(places).join('|')}) skip=1 ;;
      (*) case $at/$word in (${known.join('|')}) at=$at/$word ;; esac ;;
    esac
  done
  # --status=failed is one word, of which the value is completed.
  if [[ -z $skip && \${words[CURRENT]} == --*=* ]]; then
    skip=1 prev=\${words[CURRENT]%%=*}
    compset -P '*='
  fi
  if [[ -n $skip ]]; then
    case $prev in
      (${flagsTaking('<profile>', places).join('|')}) list=(\${(f)"$(${profile_names})"}) ;;
      (${flagsTaking('<path>', places).join('|')}) _files; return ;;
      (*) case $at:$prev in
${choicesOf(places)
  .map(([where, choices]) => `        (${where}) list=(${choices.join(' ')}) ;;`)
  .join('\n')}
      esac ;;
    esac
  elif [[ \${words[CURRENT]} == -* ]]; then
    case $at in
${places
  .map(({ at, options }) => {
    const flags = options.flatMap(({ long, description }): [string, string][] =>
      long ? [[long, description]] : [],
    )
    return `      ('${at}') list=(${entries([['--help', about_help], ...flags])}) ;;`
  })
  .join('\n')}
    esac
  else
    case $at in
${places
  .filter(({ inner, choices }) => inner.length + choices.length > 0)
  .map(({ at, inner, choices }) => {
    const words = [...inner.map(({ word, about }): [string, string] => [word, about])]
    return `      ('${at}') list=(${entries(words)}${choices.join(' ')}) ;;`
  })
  .join('\n')}
    esac
    case $at in (${placesOfProfiles(places).join('|')}) list=(\${(f)"$(${profile_names})"}) ;; esac
  fi
  if (( \${#list} )); then _describe waystation list; else _files; fi
}
if [[ $funcstack[1] == _waystation ]]; then _waystation "$@"; else compdef _waystation waystation; fi`
}

function fish(places: Place[]): string {
  const lines = places.flatMap(({ at, inner, options, choices, takes_profile }) => {
    const here = `complete -c waystation -n '__waystation_at "${at}"'`
    return [
      ...inner.map(({ word, about }) => `${here} -f -a ${word} -d ${quoted(about)}`),
      ...(choices.length > 0 ? [`${here} -f -a '${choices.join(' ')}'`] : []),
      ...(takes_profile ? [`${here} -f -a '(${profile_names})'`] : []),
      `${here} -l help -d ${quoted(about_help)}`,
      ...options.flatMap(({ flags, long, description, required, argChoices }) => {
        if (!long) return []
        const line = `${here} -l ${long.slice(2)} -d ${quoted(description)}`
        if (!required) return [line]
        if (flags.endsWith('<path>')) return [`${line} -r -F`]
        if (flags.endsWith('<profile>')) return [`${line} -x -a '(${profile_names})'`]
        return [argChoices ? `${line} -x -a '${argChoices.join(' ')}'` : `${line} -x`]
      }),
    ]
  })
  return `# fish completion for waystation
function __waystation_at
    set -l at ''
    set -l skip 0
    set -l tokens (commandline -opc)
    for token in $tokens[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $token ${valuedFlags(places).join(' ')}
            set skip 1
        else if contains -- "$at/$token" ${places
          .slice(1)
          .map(({ at }) => at)
          .join(' ')}
            set at "$at/$token"
        end
    end
    test "$at" = "$argv[1]"
end
${lines.join('\n')}`
}

/** One word in any of the shells: quotation marks inside are made typographic, for they read a backslash differently. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", '’').replaceAll('\\', '')}'`
}
