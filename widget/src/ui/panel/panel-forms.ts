import type { FormField, FormKind, FormState } from '../../vocabulary/types.ts'
import { button, element } from '../elements/elements.ts'
import type { FormView } from '../forms/form-view.ts'
import type { MessageLog } from '../messages/message-log.ts'
import type { Composer } from './composer.ts'
import type { latePart } from './late-part.ts'
import type { PanelParts } from './panel.ts'

/** Shows the form that is due instead of the message log. */
export function createPanelForms(
  { client, texts, log, composer }: PanelParts & { log: MessageLog; composer: Composer },
  late: ReturnType<typeof latePart<'forms'>>,
) {
  const place = element('div', { class: 'form-place', tabindex: '-1', hidden: true })
  const offer = button('quiet offer', texts.leaveDetails, openOffline, { hidden: true })
  const views = new Map<FormKind, FormView>()
  const skipped = new Set<FormKind>()
  let shownForm: FormKind | undefined
  /** True if the visitor has asked for the offline form during the conversation. */
  let wantsOffline = false
  let visitorOf = client.session()?.sessionId

  return {
    place,
    offer,
    isShown: () => shownForm !== undefined,
    focus,
    followVisitor,
    show,
    showState(kind: FormKind, state: FormState) {
      views.get(kind)?.show(state)
      show()
    },
  }

  function openOffline() {
    skipped.delete('offline')
    wantsOffline = true
    if (!views.get('offline')?.isFilled()) views.delete('offline')
    show()
    views.get('offline')?.focus()
  }

  /** Deletes the forms' views, including the entered values, when the visitor changes. */
  function followVisitor() {
    const sessionId = client.session()?.sessionId
    if (visitorOf && visitorOf !== sessionId) {
      views.clear()
      skipped.clear()
    }
    visitorOf = sessionId
  }

  function show() {
    const forms = client.config()?.forms && late()
    const isOffered = !client.ended() && client.isOfflineFormOffered()
    const begun = shownForm && views.get(shownForm)?.isFilled() ? shownForm : undefined
    // The form has become due while the visitor is writing a message. Keep the message field.
    if (isOffered && !shownForm && composer.draft() && !wantsOffline) skipped.add('offline')
    const due = client.ended()
      ? undefined
      : (client.formDue(begun) ?? (wantsOffline && isOffered ? 'offline' : undefined))
    const wanted = due && !skipped.has(due) ? due : undefined
    const next = forms && wanted
    const { activeElement = null } = place.getRootNode() as ShadowRoot
    // If the panel opened while the form was loading, the panel itself has the focus.
    const waited = activeElement === place.parentElement && !matchMedia('(pointer: coarse)').matches
    const hadFocus = place.contains(activeElement) || (next && (waited || composer.element.contains(activeElement)))
    if (next && place.firstElementChild !== viewOf(next).element) place.replaceChildren(viewOf(next).element)
    shownForm = next
    place.hidden = !next
    log.element.hidden = next !== undefined
    const hides = wanted && late.isLoading()
    // A hidden field would lose the focus to the page.
    if (hides && composer.element.contains(activeElement)) place.parentElement!.focus({ preventScroll: true })
    composer.element.hidden = next !== undefined || hides || client.ended() !== undefined
    offer.hidden = next !== undefined || !isOffered
    if (!hadFocus) return
    if (!next) composer.element.hidden || composer.focus()
    else if (!views.get(next)?.element.contains(activeElement)) focus()
  }

  function focus() {
    views.get(shownForm!)?.focus()
  }

  function viewOf(kind: FormKind): FormView {
    const known = views.get(kind)
    if (known) return known
    const config = client.config()
    const { fields = [] } = config?.forms?.[kind] ?? {}
    const isFree = fields.every(({ required }) => !required)
    // Who has written a message is not asked for it again (WCAG 3.3.7), but for an address only.
    const own = client.messages().filter(({ author }) => author.kind === 'visitor')
    const isWritten = kind === 'offline' && own.length > 0 && fields.some(({ type }) => type === 'email')
    const isAsked = ({ type, required }: FormField) =>
      !isWritten || type === 'email' || (required && type !== 'textarea')
    const written = fields
      .filter((field) => field.required && !isAsked(field))
      .map(({ name, maxLength }) => [
        name,
        own
          .map(({ body }) => body)
          .join('\n')
          .slice(0, maxLength),
      ])
    const view = late()!.createFormView({
      texts,
      form: { fields: fields.filter(isAsked) },
      isOffline: kind === 'offline',
      onSubmit: (given) => void client.submitForm(kind, { ...Object.fromEntries(written), ...given }),
      onSkip: kind === 'offline' || isFree ? () => skip(kind) : undefined,
    })
    views.set(kind, view)
    view.show(client.formState(kind))
    return view
  }

  function skip(kind: FormKind) {
    skipped.add(kind)
    wantsOffline = false
    show()
    composer.focus()
  }
}
