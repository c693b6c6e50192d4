// The ways out of the service: HTTP and mail, and what they may reach.

import { Sender } from '../callbacks/deliver.ts'
import { type EgressPolicy, systemInterfaces } from '../callbacks/guard.ts'
import { Lookups } from '../callbacks/lookups.ts'
import { Mailer } from '../callbacks/mail.ts'
import { SystemResolver } from '../callbacks/resolver.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/db.ts'
import type { Log } from '../http/answers.ts'
import type { State } from './parts.ts'

const mail_fault_message = 'the SMTP server did not accept an email'

export function egressOf(config: Config, db: Db, state: State, log: Log) {
  const lookups = new Lookups(new SystemResolver(db.clock))
  const policy: EgressPolicy = {
    allow: config.callback_allow,
    https_only: config.callback_https_only,
    get public_url() {
      return state.public_url
    },
    get listening() {
      return state.listening
    },
    interfaces: systemInterfaces,
    resolve: (tenant_id, name, purpose) => lookups.addresses(tenant_id, name, purpose),
  }
  const { smtp_url, mail_from } = config
  const mail = smtp_url === null ? null : { smtp_url, from: mail_from! }
  const mailer = new Mailer(mail, db.clock, { onFault: (fault) => log.warn(fault, mail_fault_message) })
  return { policy, sender: new Sender(policy, db.clock), mailer }
}
