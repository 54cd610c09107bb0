import { command, must, text, UsageError, url } from '../command.ts'
import { examine } from '../doctor/doctor.ts'
import { explainDelivery, explainMessage, explainSession } from '../explain/explain.ts'

/** A stream that outlives two heartbeats outlives every idle timeout that is long enough. */
const STREAM_OPEN_MS = 40_000

export const doctor = command(
  {
    gateway: must(url('https://chat.example')('the public URL, such as https://chat.example')),
    'site-key': must(text('the public site key of an installation')),
    origin: must(url('https://shop.example')('an origin that the installation allows')),
  },
  async function* (_services, { gateway, siteKey, origin }) {
    let faults = 0
    for await (const { isFault, text } of examine(gateway, siteKey, origin.origin, STREAM_OPEN_MS)) {
      if (isFault) faults += 1
      yield `${isFault ? 'FAULT' : 'ok   '}  ${text}`
    }
    if (faults > 0) throw new Error(`${faults} ${faults === 1 ? 'fault' : 'faults'}`)
  },
  { callsCore: false, printsText: true },
)

export const explain = command(
  {
    session: text('the id of a session; needs the scopes sessions:read, workspaces:read, messages:read'),
    message: text('the id of a message of --conversation; needs the scope messages:read'),
    conversation: text('the id of the conversation of --message'),
    delivery: text('the id of a delivery; needs the scopes leads:read, subscriptions:read'),
  },
  async function* (services, { session, message, conversation, delivery }) {
    const isOne = [session, message, delivery].filter((id) => id !== undefined).length === 1
    if (!isOne || (message === undefined) !== (conversation === undefined)) {
      throw new UsageError('give --session, --delivery, or --message with its --conversation')
    }
    if (session !== undefined) yield* explainSession(services, session)
    else if (message !== undefined) yield* explainMessage(services, conversation!, message)
    else yield* explainDelivery(services, delivery!)
  },
  { printsText: true },
)
