import type { ButtonHTMLAttributes } from 'preact'
import { Icon, type IconName } from './icon.tsx'

/** A button. `kind` is a list of style classes such as `primary` and `small`. */
export function Button({ kind = '', ...attributes }: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: string }) {
  return <button type="button" class={`button ${kind}`} {...attributes} />
}

/** A button that shows only an icon. */
export function IconButton({
  icon,
  label,
  ...attributes
}: ButtonHTMLAttributes<HTMLButtonElement> & { icon: IconName; label: string }) {
  return (
    <button type="button" class="icon-button" aria-label={label} {...attributes}>
      <Icon name={icon} />
    </button>
  )
}
