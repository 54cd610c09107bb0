import { toWidgetError, WidgetError } from './errors.ts'
import type { Emitter } from './events.ts'
import type { FeatureApi } from './feature-api.ts'
import type { FeatureRecords } from './feature-record.ts'
import type { Grants } from './late-features.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import type { PresenceKeeper } from './presence.ts'
import { retrying } from './retrying.ts'
import type { FormIssues, FormKind, FormState, WidgetConfig, WidgetEventMap } from './types.ts'

const attempts = 6

export interface FormsDeps {
  api: Pick<FeatureApi, 'submitForm'>
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  emitter: Emitter<WidgetEventMap>
  records: FeatureRecords
  presence: Pick<PresenceKeeper, 'add'>
  config(): WidgetConfig | undefined
  /** The newest page of the history is known, or the conversation is a new one. */
  isLoaded(): boolean
  grants: Grants
}

export type Forms = ReturnType<typeof createForms>

/**
 * The pre-chat and the offline form, where the installation advertises them. One submission is one operation: its key is
 * kept over attempts and reloads until the service has taken or refused it, so that a lost answer makes no second lead.
 */
export function createForms({ api, platform, emitter, records, presence, config, isLoaded, grants }: FormsDeps) {
  const { clock, random, newId, lifecycle } = platform
  const pause = createPause(clock)
  const failures: Partial<Record<FormKind, Pick<FormState, 'issues' | 'error'>>> = {}
  const running = new Map<FormKind, Promise<FormState>>()
  let visitor = {}
  lifecycle.subscribe((signal) => {
    if (signal === 'online') pause.hurry()
  })

  return {
    isAdvertised,
    state,

    /**
     * The form that comes before the first message: the offline one while nobody is there, else the pre-chat one. Each once
     * in a session, and neither in a conversation that has a message of either side.
     */
    due(): FormKind | undefined {
      const { hasBegun, forms } = records.current()
      if (hasBegun || !isLoaded() || Object.values(forms).includes('submitted')) return undefined
      const isAway = config()?.availability.online === false
      if (isAway && isAdvertised('offline')) return 'offline'
      return isAdvertised('preChat') ? 'preChat' : undefined
    },

    /** Submits a form. Resolves with its state; rejects only if there is no such form. */
    submit(kind: FormKind, fields: Record<string, string>): Promise<FormState> {
      if (!isAdvertised(kind)) return Promise.reject(new WidgetError('RouteNotAdvertised'))
      const kept = records.current().forms[kind]
      if (kept === 'submitted') return Promise.resolve(state(kind))
      const isSame = kept && JSON.stringify(kept.fields) === JSON.stringify(fields)
      if (running.has(kind)) return running.get(kind)!
      return send(kind, isSame ? kept : { key: newId(), fields: { ...fields } })
    },

    /** Continues a submission that a reload interrupted. */
    resume() {
      for (const kind of ['preChat', 'offline'] as const) {
        const kept = records.current().forms[kind]
        if (kept && kept !== 'submitted' && !running.has(kind)) void send(kind, kept)
      }
    },

    stop: pause.end,

    /** The visitor changes: submissions of the former one are neither reported nor retried. */
    reset() {
      visitor = {}
      running.clear()
      failures.preChat = failures.offline = undefined
      pause.end()
    },
  }

  function isAdvertised(kind: FormKind): boolean {
    const capability = kind === 'preChat' ? 'preChatForm' : 'offlineForm'
    return config()?.capabilities[capability] === true && (config()?.forms?.[kind]?.fields.length ?? 0) > 0
  }

  function state(kind: FormKind): FormState {
    const kept = records.current().forms[kind]
    if (kept === 'submitted') return { status: 'submitted' }
    if (running.has(kind)) return { status: 'sending', fields: kept?.fields }
    return failures[kind] ? { status: 'failed', fields: kept?.fields, ...failures[kind] } : { status: 'open' }
  }

  function send(kind: FormKind, submission: { key: string; fields: Record<string, string> }): Promise<FormState> {
    keep(kind, submission)
    failures[kind] = undefined
    const begunFor = visitor
    const withGrant = grants()
    const call = () => withGrant((grant) => api.submitForm(kind, submission.fields, grant, submission.key))
    const sending = retrying(call, { pause, random, isEnough: (_, attempt) => attempt + 1 >= attempts })
      .then(
        () => {
          if (begunFor !== visitor) return
          keep(kind, 'submitted')
          presence.add('form.submitted')
        },
        (error) => {
          if (begunFor !== visitor) return
          const failure = toWidgetError(error)
          failures[kind] = { error: failure.detail, issues: issuesOf(failure) }
          // After a refusal, the next submission gets a new key. Otherwise this one may have arrived, and keeps its key.
          if (!failure.retryable && failure.status > 0) keep(kind, undefined)
        },
      )
      .then(() => {
        if (begunFor === visitor) {
          running.delete(kind)
          tell(kind)
        }
        return state(kind)
      })
    running.set(kind, sending)
    tell(kind)
    return sending
  }

  function keep(kind: FormKind, value: Kept | undefined) {
    records.change({ forms: { ...records.current().forms, [kind]: value } })
  }

  function tell(kind: FormKind) {
    emitter.emit('form.changed', { form: kind, state: state(kind) })
  }
}

type Kept = ReturnType<FeatureRecords['current']>['forms'][FormKind]

/** `/fields/email` is the field `email`. */
function issuesOf({ issues }: WidgetError): FormIssues | undefined {
  if (!issues?.length) return undefined
  const named = issues.map(({ path, rule }) => [
    String(path).replace('/fields/', '').replaceAll('~1', '/').replaceAll('~0', '~'),
    String(rule),
  ])
  return Object.fromEntries(named)
}
