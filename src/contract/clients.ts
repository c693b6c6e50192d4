// A route's part of the clients that are generated from openapi.json (scripts/clients): names and help that its
// schemas cannot give. They go out as `x-sdk` and `x-cli`.

/** The method of a route in the SDK. */
export interface SdkMethod {
  /** `agents.create`; without a dot a method of the client itself. */
  name: string
  /** Members of the body that are arguments of their own, in this order. */
  arguments?: readonly string[]
  /** For a route that has an effect and takes no Idempotency-Key. */
  retry?: Retry
}

/** When a request whose outcome is unknown is sent again. */
export interface Retry {
  /** With this member of the body; without any of these members and headers. */
  safe: boolean | { with: string } | { without: readonly string[] }
  why: string
  /** A refusal of the repeat with one of these codes says that the first request had its effect. */
  done?: Done | readonly Done[]
}

export interface Done {
  code: string
  /** Only when `details.status` is this, and `details.decision` that. */
  status?: string
  decision?: string
  /** The call then returns this, or what this operation reads. */
  answer?: unknown
  read?: string
}

/** `--grace <duration>` and its help. The placeholder says how the value is read: duration, path, n. */
type Option = readonly [flag: string, about: string]

/** The command of a route. */
export interface CliCommand {
  /** Words and arguments, `kv delete <namespace> <key>`: parameters of the path or members of the body. */
  usage: string
  /** Default: the summary. */
  about?: string
  /** Default: the usage, with an id where the description of an argument has its prefix (`sch_…`). */
  examples?: readonly string[]
  /** About all commands that begin with the same word; one of them says it. */
  group?: string
  /**
   * Options, by what they set; false for none. Default: made from the schema, save for any JSON. `number` reads a number above
   * 0, where the schema would make it a whole number; `json` a text of JSON.
   */
  options?: Readonly<Record<string, readonly [...Option, reads?: 'number' | 'json'] | false>>
  /** A second option for the same: a time from now, the content of a file, or a constant. */
  or?: Readonly<Record<string, readonly [...Option, value?: unknown]>>
  /** Sent when nothing was given. */
  defaults?: Readonly<Record<string, unknown>>
  /** Columns of a list. */
  columns?: readonly string[]
  /** The member of the answer with a new key, which `--save` keeps as a profile. */
  key?: string
  /** Printed when the answer is empty; default `deleted`. */
  done?: string
  /** The member of the answer that is printed without `--json`. */
  shows?: string
}
