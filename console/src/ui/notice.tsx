import type { ComponentChildren } from 'preact'
import type { Failure } from '../failures.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import type { Loaded } from './load.ts'

const icons = { info: 'info', success: 'check', warning: 'warning', danger: 'warning' } as const

interface NoticeProps {
  tone: keyof typeof icons
  children: ComponentChildren
  action?: ComponentChildren
}

/** A short message on the page. */
export function Notice({ tone, children, action }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role={tone === 'danger' ? 'alert' : undefined}>
      <Icon name={icons[tone]} />
      <div class="notice-text">{children}</div>
      {action}
    </div>
  )
}

/** An error message, with a retry button if a retry can help. */
export function FailureNotice({ failure, retry }: { failure: Failure | undefined; retry?: () => void }) {
  if (!failure) return null
  const canRetry = retry && !failure.missing
  const action = canRetry && (
    <Button kind="small" onClick={retry}>
      Try again
    </Button>
  )
  return (
    <Notice tone="danger" action={action}>
      {failure.text}
    </Notice>
  )
}

/** Placeholder of a view without content. `children` explain the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** Placeholder while content is loading. It appears after a short delay. */
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

/**
 * Shows a placeholder while a value is loading, then the value, or the failure if loading fails.
 */
export function WhenLoaded<T>({
  loaded: { value, loading, failure, reload },
  name,
  children,
}: {
  loaded: Pick<Loaded<T | undefined>, 'value' | 'loading' | 'failure' | 'reload'>
  name: string
  children: (value: T) => ComponentChildren
}) {
  return (
    <>
      <FailureNotice failure={failure} retry={() => void reload()} />
      {value === undefined && loading && <Loading label={`Loading ${name}`} />}
      {value !== undefined && children(value)}
    </>
  )
}
