import https from 'node:https'
import { parseDestinationUrl } from '../../contract/destination-url.ts'
import { type Core, perCore } from '../core.ts'
import { resolverOf } from '../deliveries/destination-check.ts'
import { senderAddress } from '../mail/mailer.ts'
import { storedKey } from '../stored-key.ts'

/** The keys are in base64url (RFC 8030, RFC 8291). */
export interface PushSubscription {
  endpoint: string
  keys: { p256dh: string; auth: string }
}

/** `gone`: the browser gets no more pushes there. */
type PushOutcome = 'accepted' | 'gone' | 'failed'

/** A push service drops what the browser has not fetched within this time. */
const lifetimeSeconds = 3_600

/** Authorities (PEM) of push services instead of Node's, for tests. */
export const pushAuthoritiesOf = perCore((): string | undefined => undefined)

/** Loaded at the first use, because most services send no pushes. */
const webPush = async () => (await import('web-push')).default

const storedKeys = storedKey('push', async () => JSON.stringify((await webPush()).generateVAPIDKeys()))

async function vapidKeys(core: Core): Promise<{ publicKey: string; privateKey: string }> {
  return JSON.parse(await storedKeys(core))
}

export const pushKeyOf = async (core: Core): Promise<string> => (await vapidKeys(core)).publicKey

export function endpointUrl(endpoint: string): URL | undefined {
  const url = parseDestinationUrl(endpoint)
  return url?.protocol === 'https:' ? url : undefined
}

/** Encrypts for the browser. Connects only to a checked address, and follows no redirect. Never rejects. */
export async function sendPush(core: Core, subscription: PushSubscription, payload: object): Promise<PushOutcome> {
  try {
    const vapidDetails = { subject: subjectOf(core), ...(await vapidKeys(core)) }
    const options = { vapidDetails, TTL: lifetimeSeconds, urgency: 'high' as const }
    const request = (await webPush()).generateRequestDetails(subscription, JSON.stringify(payload), options)
    const url = endpointUrl(subscription.endpoint)
    if (!url) return 'gone'
    const signal = AbortSignal.timeout(10_000)
    const addresses = await resolverOf(core).resolve(url.hostname, signal)
    const status = await post(url, {
      method: 'POST',
      headers: request.headers,
      body: request.body,
      signal,
      ca: pushAuthoritiesOf(core),
      rejectUnauthorized: true,
      agent: false,
      lookup: (_host, { all }, done) =>
        all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family),
    })
    return status === 404 || status === 410 ? 'gone' : status >= 200 && status < 300 ? 'accepted' : 'failed'
  } catch {
    return 'failed'
  }
}

/** Returns the status, without reading the body. */
function post(url: URL, { body, ...options }: https.RequestOptions & { body: Buffer | null }): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = https.request(url, options, (answer) => {
      resolve(answer.statusCode ?? 0)
      answer.destroy()
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** Returns whom a push service may ask. */
function subjectOf({ config: { PUBLIC_URL: url, SMTP_FROM: from } }: Core) {
  if (url.startsWith('https:')) return url
  return `mailto:${senderAddress(from) || 'operators@localhost.localdomain'}`
}
