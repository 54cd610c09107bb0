import type { ComponentChildren } from 'preact'
import type { Failure } from '../failures.ts'
import { Icon, type IconName } from './icon.tsx'

const icons: Record<string, IconName> = { info: 'info', success: 'check', warning: 'warning', danger: 'warning' }

/** A word about what is on the page, where it is. */
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

/** What went wrong, and the way on. */
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

/** Nothing is here yet, and what to do about it. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** Grey bars where text will be. They show only when it takes a while. */
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
