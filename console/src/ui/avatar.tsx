import { initialsOf } from '../../../widget/src/ui/initials.ts'

/** Shows a visitor's initials on a colour that is derived from the ID. */
export function Avatar({ name, id, verified }: { name: string; id: string; verified: boolean }) {
  return (
    <span class={`avatar tint-${hash(id) % tints}`} aria-hidden="true">
      {initialsOf(name)}
      {verified && <span class="avatar-mark" />}
    </span>
  )
}

const tints = 6

/**
 * Returns the upper half of the FNV-1a hash, because the lower bits hardly differ for similar IDs.
 */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193)
  return value >>> 16
}
