import type { Capabilities } from '#proto/session/v1/session_pb.js'
import type { Installation } from '#proto/workspace/v1/workspace_pb.js'
import { isOriginEntry } from '../../../contract/origins.ts'
import type { ProtoFields } from '../../../contract/proto-fields.ts'

/** The retry route is for other clients than the widget. */
type CapabilityName = Exclude<keyof ProtoFields<Capabilities>, 'messageRetryRoute'>

/** What the capabilities do, in the order in which the console lists them. */
export const capabilities: Record<CapabilityName, string> = {
  identity: 'Your backend can verify who a visitor is.',
  typing: 'Both sides see when the other is typing.',
  pageContext: 'The widget reports the page URL without query and fragment.',
  navigation: 'Operators can ask a visitor to open another page.',
  screenshots: 'Operators can ask for a screenshot of the page.',
  preChatForm: 'Shown before the first message. Creates a lead.',
  offlineForm: 'Shown while the chat is away. Creates a lead.',
  presence: 'You see whether the visitor has the chat open.',
  receipts: 'You see whether the visitor has received and read your messages.',
  rating: 'You can ask visitors for a rating when you close a conversation.',
  stopAnswer: 'Visitors can stop an answer of a bot while it is written.',
}

export const capabilityNames = Object.keys(capabilities) as CapabilityName[]

/** Returns the name of a website. If it has none, returns the title of its chat, or its site key. */
export const websiteName = ({ name, appearance, publicSiteKey }: Installation) =>
  name || appearance?.title || publicSiteKey

/** Describes a field for the lines of which `repliesOf` makes opening replies. */
export const repliesHint = 'Sent with a tap as the first message. At most five lines of 80 characters.'

/** Returns the opening replies that a text has, one in each line. */
export const repliesOf = (text: string) => ({
  texts: text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean),
})

export function originProblem(entry: string) {
  if (isOriginEntry(entry)) return undefined
  if (entry.startsWith('https://*.')) return 'Enter a full domain after *., for example https://*.example.com.'
  if (entry.includes('*')) return 'A * is allowed only at the start and with https, for example https://*.example.com.'
  return 'Enter the address of a site, for example shop.example.'
}

/** Returns the origin of an address. The address may have a path, and may lack the scheme. */
export function toOrigin(address: string) {
  if (/[*\s]/.test(address)) return address
  const scheme = /^localhost\b|^[\d.]+(:|$)/.test(address) ? 'http' : 'https'
  const url = URL.parse(/^\w+:\/\//.test(address) ? address : `${scheme}://${address}`)
  return url?.host ? url.origin : address
}

/** Returns the script element that loads the widget on a page. The gateway serves the script. */
export const snippetOf = (gatewayUrl: string, siteKey: string) =>
  `<script src="${gatewayUrl}/widget.js" data-site-key="${siteKey}" data-api-base-url="${gatewayUrl}" defer></script>`
