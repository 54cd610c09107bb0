/** A visitor's initials on a colour of their own, for the eye to find the same one again. */
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

/** FNV-1a, the upper half of it: its lower bits tell names that differ by little hardly apart. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193)
  return value >>> 16
}
