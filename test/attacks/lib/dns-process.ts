// A DNS server on port 53 of an address of loopback that nobody else uses, in a process of its own. It has one name,
// pub.test, and is silent about those that begin with hang.

import { startDnsServer } from '../../support/dns.ts'

const host = '127.66.0.53'
await startDnsServer(
  (name) => {
    if (name.startsWith('hang')) return null
    return name === 'pub.test' ? { addresses: ['127.0.0.1'] } : 'NXDOMAIN'
  },
  { host, port: 53 },
)
process.on('disconnect', () => process.exit(0))
process.send!(host)
