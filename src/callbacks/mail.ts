// Emails, handed to the operator's SMTP server. Its address is a setting, so that the egress guard has no say in it.

import { type Clock, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { OnceAMinute } from '../base/once-a-minute.ts'
import type { FailureClass, Outcome, OutgoingMail } from './attempt.ts'

/** A server that looks its clients up, or waits for those that talk before their turn, greets after some seconds. */
const connect_ms_max = limit(
  'mail.connect',
  12 * second_ms,
  'milliseconds',
  'How long a connection to the SMTP server, and its greeting, may take. Past it the attempt fails with `timeout`.',
)
/** A server that scans an email before it answers may deliver one that was given up here, once for each attempt. */
export const attempt_ms_max = limit(
  'mail.attempt',
  20 * second_ms,
  'milliseconds',
  'How long the SMTP server has to accept an email, including its greeting. Past it the attempt fails with `timeout`.',
)

export interface MailSettings {
  /** `smtp://user:password@host:587` or `smtps://…`. */
  smtp_url: string
  /** The sender. */
  from: string
}

export interface MailFault {
  /** Host and port. */
  server: string
  error: FailureClass
  /** The code of the reply and the enhanced one (RFC 3463), never its text, which may name the address; null without a reply. */
  reply: string | null
  /** The command of SMTP that failed; null when that is not known. */
  command: string | null
}

export interface MailerOptions {
  attempt_ms?: number
  /** Called when an email was not taken, and for each kind of it once a minute at most. */
  onFault?(fault: MailFault): void
}

interface SmtpError {
  code?: string
  /** Of SMTP, or `CONN`. */
  command?: string
  response?: string
  /** Of the socket, where `code` says only that it failed. */
  originalCode?: string
  responseCode?: number
}

/** Sends one email a connection. `status` of an outcome is the reply code of SMTP. */
export class Mailer {
  readonly #attempt_ms: number
  readonly #lines: OnceAMinute

  constructor(
    private readonly settings: MailSettings | null,
    private readonly clock: Clock,
    private readonly options: MailerOptions = {},
  ) {
    this.#attempt_ms = options.attempt_ms ?? attempt_ms_max
    this.#lines = new OnceAMinute(clock)
  }

  /** Never rejects. */
  async send(mail: OutgoingMail): Promise<Outcome> {
    const started = this.clock.monotonic()
    const ended = (status: number | null, error: FailureClass | null): Outcome => {
      const duration_ms = Math.round(this.clock.monotonic() - started)
      return { ok: error === null, status, error, duration_ms }
    }
    if (!this.settings) return ended(null, 'blocked')
    const deadline = new AbortController()
    const timer = setTimeout(() => deadline.abort(), this.#attempt_ms)
    try {
      await this.#handOver(this.settings, mail, deadline.signal)
      return ended(250, null)
    } catch (error) {
      const given = deadline.signal.aborted ? { code: 'ETIMEDOUT' } : (error as SmtpError)
      const status = replyCodeOf(given)
      const failure = status === null ? failureOf(given) : 'status'
      this.#tell(this.settings, status, failure, given)
      return ended(status, failure)
    } finally {
      clearTimeout(timer)
    }
  }

  #tell({ smtp_url }: MailSettings, status: number | null, error: FailureClass, given: SmtpError): void {
    const { command = null, response = '' } = given
    const [, enhanced] = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response) ?? []
    const reply = status === null ? null : [status, ...(enhanced ? [enhanced] : [])].join(' ')
    if (!this.#lines.isDue(`${error} ${reply} ${command}`)) return
    this.options.onFault?.({ server: new URL(smtp_url).host, error, reply, command })
  }

  /** The library is loaded with the first mail: a service without SMTP_URL never needs it. */
  async #handOver(
    { smtp_url, from }: MailSettings,
    { to, subject, text, headers }: OutgoingMail,
    signal: AbortSignal,
  ) {
    const { createTransport } = await import('nodemailer')
    const transport = createTransport({
      url: smtp_url,
      connectionTimeout: connect_ms_max,
      greetingTimeout: connect_ms_max,
      socketTimeout: this.#attempt_ms,
      // Destroyed, so that a server that does not answer holds no connection.
      socketCloseTimeout: 0,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
    try {
      // An address is given as an object, so that no text in it can be read as a list of addresses.
      await transport.sendMail({ from, to: { name: '', address: to }, subject, text, headers, signal })
    } finally {
      transport.close()
    }
  }
}

/**
 * Null when the server answered with anything but a reply (RFC 5321 section 4.2), such as a number of another length, or refused
 * STARTTLS: the email was not offered to it.
 */
function replyCodeOf({ code, responseCode = 0 }: SmtpError): number | null {
  return code !== 'ETLS' && responseCode >= 200 && responseCode <= 599 ? responseCode : null
}

/** Of OpenSSL (`ERR_SSL_…`), or of a certificate: `ERR_TLS_CERT_ALTNAME_INVALID`, `CERT_HAS_EXPIRED`, `DEPTH_ZERO_SELF_SIGNED_CERT`. */
const of_tls = /^ERR_(SSL|TLS)_|^(?!ERR_)[A-Z]+_/

function failureOf({ code, originalCode = '' }: SmtpError): FailureClass {
  if (code === 'EDNS') return 'dns'
  if (code === 'ETIMEDOUT') return 'timeout'
  return code === 'ETLS' || of_tls.test(originalCode) ? 'tls' : 'refused'
}
