/** A visitor's initials on a colour derived from their ID. */
export function Avatar({ name, id, verified = false }: { name: string; id: string; verified?: boolean }) {
  const words = name.trim().split(/\s+/u)
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].flatMap((word) =>
    [...(word ?? '')].slice(0, 1),
  )
  return (
    <span class={`avatar tint-${hash(id) % tints}`} aria-hidden="true">
      {letters.join('').toUpperCase()}
      {verified && <span class="avatar-mark" />}
    </span>
  )
}

const tints = 6

/** Upper half of FNV-1a, because the lower bits hardly differ for similar IDs. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193)
  return value >>> 16
}
