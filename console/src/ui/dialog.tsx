import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type FormOf, type FormOptions, TextField, useForm } from './form.tsx'
import { useAction } from './load.tsx'
import { Button, type ButtonProps, Card, FailureNotice, IconButton, type IconName } from './page.tsx'

interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  wide?: boolean
  /** True if Escape must not close the dialog. */
  mustDecide?: boolean
}

const textField = '.dialog-body :is(input:not([type=checkbox], [type=radio], [type=file], [readonly]), textarea)'

/** A modal dialog. The focus goes to its first text field, stays in it while open, and returns when closed. */
export function Dialog({ title, onClose, children, wide, mustDecide }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const onCloseNow = useRef(onClose)
  onCloseNow.current = onClose
  // A layout effect, so that the next key press goes to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement
    const element = dialog.current!
    element.showModal()
    element.querySelector<HTMLElement>(textField)?.focus()
    // The browser has closed the dialog: by Escape, or by a second Escape although it must not.
    element.onclose = () => (mustDecide ? element.showModal() : onCloseNow.current())
    return () => {
      element.onclose = null
      element.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      {...(mustDecide && { closedby: 'none' })}
      onCancel={(event) => mustDecide && event.preventDefault()}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        {!mustDecide && <IconButton icon="close" label="Close" onClick={onClose} />}
      </header>
      {children}
    </dialog>
  )
}

interface ActionDialogProps<Draft extends object>
  extends Pick<DialogProps, 'title' | 'onClose'>,
    Pick<FormOptions<Draft>, 'problemsOf' | 'done'> {
  /** Text of the button that runs the action. */
  action: string
  danger?: boolean
  start?: Draft
  isReady?: (draft: Draft) => boolean
  onConfirm: (draft: Draft) => Promise<unknown>
  children: ComponentChildren | ((form: FormOf<Draft>) => ComponentChildren)
}

/** Asks for input or a confirmation, runs an action and closes if it succeeds. */
export function ActionDialog<Draft extends object>(props: ActionDialogProps<Draft>) {
  const { title, action, danger, start = {} as Draft, isReady = () => true, onConfirm, onClose, children } = props
  const form = useForm({ ...props, start, save: (draft) => onConfirm(draft).then(onClose) })
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack dialog-body" ref={form.element} onSubmit={form.submit} noValidate>
        {typeof children === 'function' ? children(form) : children}
        <FailureNotice failure={form.failure} />
        <div class="line dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            kind={danger ? 'danger' : 'primary'}
            disabled={form.busy || !isReady(form.draft)}
            text={action}
          />
        </div>
      </form>
    </Dialog>
  )
}

export interface DialogButtonProps<Draft extends object> extends Omit<ActionDialogProps<Draft>, 'onClose'> {
  button: string
  kind?: string
  icon?: IconName
  /** Accessible name of the button, needed if a page has several of them. */
  label?: string
  isOff?: boolean
}

export function DialogButton<Draft extends object>(props: DialogButtonProps<Draft>) {
  const { button, kind = 'small', icon, label, isOff, ...dialog } = props
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button
        kind={kind}
        icon={icon}
        aria-label={label}
        title={label}
        disabled={isOff}
        onClick={() => setOpen(true)}
        text={button}
      />
      {isOpen && <ActionDialog {...dialog} onClose={() => setOpen(false)} />}
    </>
  )
}

interface ActionButtonProps extends ButtonProps {
  act: () => Promise<unknown>
  /** What screen readers say afterwards. */
  done?: string
}

/** A button that runs an action, and shows its failure beside itself. */
export function ActionButton({ kind = 'small', act, done, ...button }: ActionButtonProps) {
  const { busy, failure, run } = useAction()
  return (
    <>
      <FailureNotice failure={failure} />
      <Button kind={kind} disabled={busy} onClick={() => run(act, done)} {...button} />
    </>
  )
}

interface DeleteButtonProps extends Pick<FormOptions<object>, 'done'> {
  /** Kind of the thing, for example `website`. */
  what: string
  /** Text that the operator must type. */
  name: string
  explanation: string
  label?: string
  onDelete: () => Promise<unknown>
}

/** Button that deletes something for good, after the operator has typed its name. */
export function DeleteButton({ what, name, explanation, onDelete, ...button }: DeleteButtonProps) {
  return (
    <DialogButton
      {...button}
      button="Delete"
      title={`Delete ${what}?`}
      action={`Delete ${what}`}
      danger
      start={{ typed: '' }}
      isReady={({ typed }) => typed.trim() === name}
      onConfirm={onDelete}
    >
      {({ field }) => (
        <>
          <p>{explanation} This cannot be undone.</p>
          <TextField label={`Type “${name}” to confirm`} maxLength={2048} {...field('typed')} />
        </>
      )}
    </DialogButton>
  )
}

export function DeleteCard(props: Omit<DeleteButtonProps, 'label'>) {
  return (
    <Card title={`Delete this ${props.what}`} actions={<DeleteButton {...props} />}>
      <p>{props.explanation}</p>
    </Card>
  )
}

export function EnabledTag({ enabled }: { enabled: boolean }) {
  return <span class={enabled ? 'tag ok' : 'tag bad'}>{enabled ? 'Enabled' : 'Disabled'}</span>
}

interface EnableButtonProps {
  enabled: boolean
  /** Text that names the thing to disable, for example `this website`. */
  what: string
  action: string
  explanation: string
  label?: string
  /** What screen readers say afterwards. */
  done?: readonly [enabled: string, disabled: string]
  set: (enabled: boolean) => Promise<unknown>
}

/** Button that enables or disables something. Asks for a confirmation before it disables. */
export function EnableButton({ enabled, what, action, explanation, label, done, set }: EnableButtonProps) {
  if (!enabled)
    return (
      <ActionButton
        kind="primary small"
        aria-label={label && `Enable ${label}`}
        act={() => set(true)}
        done={done?.[0]}
        text="Enable"
      />
    )
  return (
    <DialogButton
      button="Disable"
      label={label && `Disable ${label}`}
      title={`Disable ${what}?`}
      action={action}
      danger
      done={done?.[1]}
      onConfirm={() => set(false)}
    >
      <p>{explanation}</p>
    </DialogButton>
  )
}

/** A new secret and its name on screen. */
interface NewSecret {
  label: string
  secret: string
}

type CopyOnceProps = NewSecret & Pick<SecretsCardProps, 'advice'> & Pick<DialogProps, 'title' | 'onClose'>

/** Shows a secret once. Closes only after the operator confirms that it is stored. */
export function CopyOnce({ title, secret, label, advice, onClose }: CopyOnceProps) {
  const [isStored, setStored] = useState(false)
  return (
    <Dialog title={title} onClose={onClose} mustDecide>
      <div class="stack dialog-body">
        <p>{advice}</p>
        <CopyField label={label} text={secret} />
        <label class="line check">
          <input type="checkbox" checked={isStored} onChange={(event) => setStored(event.currentTarget.checked)} />I
          have stored it. It will not be shown again.
        </label>
        <div class="line dialog-actions">
          <Button kind="primary" disabled={!isStored} onClick={onClose} text="Done" />
        </div>
      </div>
    </Dialog>
  )
}

/** A text that is selected when it gets the focus, with a button that copies it. */
export function CopyField({ label, hint, text }: { label: string; hint?: string; text: string }) {
  return (
    <TextField
      label={label}
      hint={hint}
      class="input mono"
      readOnly
      value={text}
      onFocus={(event) => event.currentTarget.select()}
      beside={<CopyButton text={text} />}
    />
  )
}

export function CopyButton({ text }: { text: string }) {
  const [status, setStatus] = useState('Copy')
  async function copy() {
    const copied = navigator.clipboard?.writeText(text).then(() => 'Copied')
    setStatus((await copied?.catch(() => undefined)) ?? 'Select and copy manually')
  }
  return (
    <Button icon="copy" onClick={copy}>
      <span role="status">{status}</span>
    </Button>
  )
}

interface SecretsCardProps {
  title: string
  /** Name of the secret, for example `identity secret`. */
  what: string
  explanation: string
  advice: string
  rotate: () => Promise<NewSecret>
  /** Called when the operator has confirmed that the new secret is stored. */
  onRotated: () => void
  children: ComponentChildren
  fields?: ComponentChildren
}

/** Card that shows secrets and rotates them. A new secret is shown only once. */
export function SecretsCard(props: SecretsCardProps) {
  const { title, what, explanation, advice, rotate, onRotated, children, fields } = props
  const [created, setCreated] = useState<NewSecret>()
  return (
    <Card
      title={title}
      actions={
        <DialogButton
          button="Rotate"
          title={`Rotate the ${what}?`}
          action="Create new secret"
          onConfirm={async () => setCreated(await rotate())}
        >
          <p>{explanation}</p>
          {fields}
        </DialogButton>
      }
    >
      {children}
      {created && (
        <CopyOnce
          {...created}
          title={`New ${what}`}
          advice={advice}
          onClose={() => {
            setCreated(undefined)
            onRotated()
          }}
        />
      )}
    </Card>
  )
}
