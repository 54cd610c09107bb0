import { createPause } from '../../../browser/pause.ts'
import { retrying } from '../transport/retrying.ts'
import { toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { FormIssues, FormKind, FormState } from '../vocabulary/types.ts'
import type { FeatureRecords } from './feature-record.ts'
import type { PartsWithPresence } from './presence.ts'

const attempts = 6

/**
 * Handles the pre-chat form and the offline form. All attempts of a submission use one idempotency
 * key, even after a reload, so that the service creates only one lead. `isLoaded` returns true if the
 * newest history page is loaded or the conversation is new.
 */
export function createForms(parts: PartsWithPresence, isLoaded: () => boolean) {
  const { api, emitter, records, presence, config, grants, consented } = parts
  const { clock, random, newId, lifecycle } = parts.platform
  const pause = createPause(clock)
  const failures: Partial<Record<FormKind, Pick<FormState, 'issues' | 'error'>>> = {}
  const running = new Map<FormKind, Promise<FormState>>()
  let visitor = {}
  lifecycle.subscribe((signal) => {
    if (signal === 'online') pause.hurry()
  })

  return {
    isOffered,
    state,

    /**
     * Returns the form that is due before the first message. This is the form that the visitor has
     * begun to fill in, if any. Otherwise it is the offline form if no operator is online, else the
     * pre-chat form. Returns undefined if a form was submitted or the conversation has messages.
     */
    due(begun?: FormKind): FormKind | undefined {
      const { hasBegun, forms } = records.current()
      if (hasBegun || !isLoaded() || Object.values(forms).includes('submitted')) return undefined
      if (begun && isAdvertised(begun)) return begun
      if (isOffered()) return 'offline'
      return isAdvertised('preChat') ? 'preChat' : undefined
    },

    /**
     * Submits a form. Resolves to the form's state after the submission, even if the submission
     * failed. Rejects only if the installation does not have this form.
     */
    submit(kind: FormKind, fields: Record<string, string>): Promise<FormState> {
      if (!isAdvertised(kind)) return Promise.reject(new WidgetError('RouteNotAdvertised'))
      const stored = records.current().forms[kind]
      if (stored === 'submitted') return Promise.resolve(state(kind))
      const isSame = stored && JSON.stringify(stored.fields) === JSON.stringify(fields)
      if (running.has(kind)) return running.get(kind)!
      return send(kind, isSame ? stored : { key: newId(), fields: { ...fields } })
    },

    /** Continues form submissions that a reload interrupted. */
    resume() {
      for (const kind of ['preChat', 'offline'] as const) {
        const stored = records.current().forms[kind]
        if (stored && stored !== 'submitted' && !running.has(kind)) void send(kind, stored)
      }
    },

    stop: pause.end,

    /**
     * Must be called when the visitor changes. Submissions of the previous visitor are then neither
     * reported nor retried.
     */
    reset() {
      visitor = {}
      running.clear()
      failures.preChat = failures.offline = undefined
      pause.end()
    },
  }

  function isOffered() {
    const isAway = config()?.availability.online === false
    return isAway && isAdvertised('offline') && records.current().forms.offline !== 'submitted'
  }

  function isAdvertised(kind: FormKind) {
    const capability = kind === 'preChat' ? 'preChatForm' : 'offlineForm'
    return config()?.capabilities[capability] === true && (config()?.forms?.[kind]?.fields.length ?? 0) > 0
  }

  function state(kind: FormKind): FormState {
    const stored = records.current().forms[kind]
    if (stored === 'submitted') return { status: 'submitted' }
    if (running.has(kind)) return { status: 'sending', fields: stored?.fields }
    return failures[kind] ? { status: 'failed', fields: stored?.fields, ...failures[kind] } : { status: 'open' }
  }

  function send(kind: FormKind, submission: { key: string; fields: Record<string, string> }): Promise<FormState> {
    keep(kind, submission)
    failures[kind] = undefined
    const begunFor = visitor
    const withGrant = grants()
    const path = kind === 'preChat' ? '/forms/pre-chat' : '/forms/offline'
    const body = { fields: submission.fields }
    const call = () =>
      consented(() => withGrant((grant) => api.post(path, 'formSubmissionId', body, submission.key, grant)))
    const sending = retrying(call, { pause, random, attempts })
      .then(
        () => {
          if (begunFor !== visitor) return
          keep(kind, 'submitted')
          presence.add('form.submitted', { address: addressIn(kind, submission.fields) })
        },
        (error) => {
          if (begunFor !== visitor) return
          const failure = toWidgetError(error)
          failures[kind] = { error: failure.detail, issues: issuesOf(failure) }
          // The service rejected the submission, so the next submission gets a new key. After other
          // failures the outcome is unknown, so the next attempt uses the same key.
          if (!failure.retryable && failure.status > 0) keep(kind, undefined)
        },
      )
      .then(() => {
        if (begunFor === visitor) {
          running.delete(kind)
          emitChanged(kind)
        }
        return state(kind)
      })
    running.set(kind, sending)
    emitChanged(kind)
    return sending
  }

  /** Returns the submitted mail address, or else the telephone number. */
  function addressIn(kind: FormKind, fields: Record<string, string>) {
    const ofType = (wanted: string) =>
      config()?.forms?.[kind]?.fields.flatMap(({ name, type }) => (type === wanted && fields[name]) || [])[0]
    return ofType('email') ?? ofType('tel')
  }

  function keep(kind: FormKind, value: StoredSubmission | undefined) {
    records.change({ forms: { ...records.current().forms, [kind]: value } })
  }

  function emitChanged(kind: FormKind) {
    emitter.emit('form.changed', { form: kind, state: state(kind) })
  }
}

type StoredSubmission = ReturnType<FeatureRecords['current']>['forms'][FormKind]

/** Returns the issues by field name: the pointer `/fields/email` becomes the name `email`. */
function issuesOf({ issues }: WidgetError): FormIssues | undefined {
  if (!issues?.length) return undefined
  const named = issues.map(({ path, rule }) => [
    String(path).replace('/fields/', '').replaceAll('~1', '/').replaceAll('~0', '~'),
    String(rule),
  ])
  return Object.fromEntries(named)
}
