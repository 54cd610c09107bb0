import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { initialsOf } from '../../../browser/chat/initials.ts'
import { WIDGET_PREFIX } from '../../../contract/public-api.ts'
import { Icon } from './page.tsx'

/** Shows a visitor's initials on a colour that is derived from the ID, with a dot for their presence. */
export function Avatar({ name, id, presence }: { name: string; id: string; presence?: Presence }) {
  const mark = { [Presence.HERE as number]: 'here', [Presence.AWAY]: 'away' }[presence ?? Presence.UNSPECIFIED]
  return (
    <span class="avatar" style={{ '--hue': `${hash(id) % 360}` }} aria-hidden="true">
      {initialsOf(name)}
      {mark && <span class={`avatar-mark ${mark}`} />}
    </span>
  )
}

const picturesPath = `${WIDGET_PREFIX}/pictures/`

/** Returns the path of a picture that the service stores; undefined for pictures of other hosts. */
export function storedPath(url: string | undefined) {
  const path = url === undefined ? undefined : URL.parse(url)?.pathname
  return path?.startsWith(picturesPath) ? path : undefined
}

/** Shows initials, and covers them with a stored picture. The console asks no other host. */
export function Picture({ initials, url }: { initials: string; url: string | undefined }) {
  const path = storedPath(url)
  return (
    <span class="avatar" aria-hidden="true">
      {initials}
      {path && <img key={path} src={path} alt="" onError={({ currentTarget }) => (currentTarget.hidden = true)} />}
    </span>
  )
}

/** Words for the presence of a visitor. Empty while it is unknown. */
export const presenceWords = {
  [Presence.UNSPECIFIED]: '',
  [Presence.HERE]: 'Online',
  [Presence.AWAY]: 'Away',
  [Presence.GONE]: 'Offline',
}

/** A mark beside the name of a visitor whom the site has verified. */
export function VerifiedMark() {
  return (
    <span class="verified-mark" title="Verified by the site">
      <Icon name="check" />
      <span class="visually-hidden">, verified</span>
    </span>
  )
}

/** Returns the upper half of the FNV-1a hash. Its lower bits hardly differ for similar IDs. */
function hash(text: string) {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193)
  return value >>> 16
}
