import type { Capabilities } from '#proto/session/v1/session_pb.js'

export type CapabilityName = keyof Omit<Capabilities, '$typeName' | '$unknown'>

export const capabilities: { name: CapabilityName; label: string; hint: string }[] = [
  { name: 'identity', label: 'Verified identity', hint: 'Your backend may vouch for who a visitor is.' },
  { name: 'typing', label: 'Typing', hint: 'Both sides see when the other one writes.' },
  { name: 'pageContext', label: 'Page context', hint: 'The widget reports the page, without query and fragment.' },
  { name: 'navigation', label: 'Navigation requests', hint: 'An operator may ask a visitor to go to another page.' },
  { name: 'screenshots', label: 'Screenshot requests', hint: 'An operator may ask for a picture of the page.' },
  { name: 'preChatForm', label: 'Pre-chat form', hint: 'Asked before the first message. A lead is captured from it.' },
  { name: 'offlineForm', label: 'Offline form', hint: 'Offered while nobody is there. A lead is captured from it.' },
  { name: 'messageRetryRoute', label: 'Retry route', hint: 'For clients of your own; the widget does not need it.' },
]

const hostLabel = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/

/** What is wrong with an allowed origin, or undefined. The service holds the same rule. */
export function originProblem(entry: string): string | undefined {
  const wildcard = /^https:\/\/\*\.([^/:]+)(:\d+)?$/.exec(entry)
  if (wildcard) {
    const labels = wildcard[1]!.split('.')
    return labels.length >= 2 && labels.every((label) => hostLabel.test(label))
      ? undefined
      : 'After *. comes a whole domain, for example https://*.example.com.'
  }
  if (entry.includes('*')) return 'A * stands only in front, and only with https: https://*.example.com.'
  const url = URL.parse(entry)
  if (!url || !/^https?:$/.test(url.protocol)) return 'Begin with https:// or http://, for example https://example.com.'
  return url.origin === entry ? undefined : `Scheme, host and port only. Did you mean ${url.origin}?`
}

/** The script element that puts the widget on a page; the gateway serves the file itself. */
export const snippetOf = (gatewayUrl: string, siteKey: string) =>
  `<script src="${gatewayUrl}/widget.js" data-site-key="${siteKey}" data-api-base-url="${gatewayUrl}" defer></script>`

/** Black or white, whichever is read better on the colour. */
export function textOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? '#000000' : '#ffffff'
}
