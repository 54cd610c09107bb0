/** A visitor's initials on a colour of their own, for the eye to find the same one again. */
export function Avatar({ name, id, verified = false }: { name: string; id: string; verified?: boolean }) {
  const words = name.trim().split(/\s+/u)
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].flatMap((word) =>
    [...(word ?? '')].slice(0, 1),
  )
  return (
    <span class={`avatar tint-${hash(id) % 6}`} aria-hidden="true">
      {letters.join('').toUpperCase()}
      {verified && <span class="avatar-mark" />}
    </span>
  )
}

function hash(text: string): number {
  let value = 0
  for (const char of text) value = (value * 31 + char.charCodeAt(0)) >>> 0
  return value
}
