import { command } from '../command.ts'
import { examine } from '../doctor/doctor.ts'
import { urlOf } from '../usage.ts'

/** A stream that outlives two heartbeats outlives every idle timeout that is long enough. */
const STREAM_OPEN_MS = 40_000

export const doctor = command({
  summary: 'Open the public URL of the gateways as a browser does, and name each fault and how to mend it',
  flags: {
    gateway: { type: 'string', required: true, description: 'the public URL, such as https://chat.example' },
    'site-key': { type: 'string', required: true, description: 'the public site key of an installation' },
    origin: { type: 'string', required: true, description: 'an origin that the installation allows' },
  },
  callsCore: false,
  printsText: true,
  async *run(_services, { gateway, 'site-key': siteKey, origin }) {
    let faults = 0
    const pageOrigin = urlOf('origin', origin, 'https://shop.example').origin
    for await (const { isFault, text } of examine({
      url: urlOf('gateway', gateway, 'https://chat.example'),
      siteKey,
      origin: pageOrigin,
      openMs: STREAM_OPEN_MS,
    })) {
      if (isFault) faults += 1
      yield `${isFault ? 'FAULT' : 'ok   '}  ${text}`
    }
    if (faults > 0) throw new Error(`${faults} ${faults === 1 ? 'fault' : 'faults'}`)
  },
})
