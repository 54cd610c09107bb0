import type { ComponentChildren } from 'preact'
import type { Failure } from '../failures.ts'
import { Icon, type IconName } from './icon.tsx'

const icons: Record<string, IconName> = { info: 'info', success: 'check', warning: 'warning', danger: 'warning' }

/** A short message on the page. */
export function Notice({
  tone,
  children,
  action,
}: {
  tone: 'info' | 'success' | 'warning' | 'danger'
  children: ComponentChildren
  action?: ComponentChildren
}) {
  return (
    <div class={`notice ${tone}`} role={tone === 'danger' ? 'alert' : undefined}>
      <Icon name={icons[tone]!} />
      <div class="notice-text">{children}</div>
      {action}
    </div>
  )
}

/** An error message, with a retry button if a retry can help. */
export function FailureNotice({ failure, retry }: { failure: Failure | undefined; retry?: () => void }) {
  if (!failure) return null
  return (
    <Notice
      tone="danger"
      action={
        retry &&
        !failure.missing && (
          <button type="button" class="button small" onClick={retry}>
            Try again
          </button>
        )
      }
    >
      {failure.text}
    </Notice>
  )
}

/** Placeholder of an empty view, with the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** Loading placeholder. Appears after a short delay. */
export function Loading({ label }: { label: string }) {
  return (
    <div class="loading">
      <span class="visually-hidden">{label}</span>
      <span class="bar" />
      <span class="bar" />
      <span class="bar" />
    </div>
  )
}
