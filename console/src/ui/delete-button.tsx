import { useState } from 'preact/hooks'
import { DialogButton } from './dialog.tsx'
import { TextField } from './field.tsx'
import { Card } from './page.tsx'

interface DeleteButtonProps {
  /** Kind of the thing, for example `installation`. */
  kind: string
  /** Text that the operator must type. */
  name: string
  explanation: string
  /** Accessible name of the button, needed if a page has several of them. */
  label?: string
  onDelete: () => Promise<unknown>
}

/** Button that deletes something for good, after the operator has typed its name. */
export function DeleteButton({ kind, name, explanation, label, onDelete }: DeleteButtonProps) {
  const [typed, setTyped] = useState('')
  return (
    <DialogButton
      button="Delete"
      label={label}
      title={`Delete ${kind}?`}
      action={`Delete ${kind}`}
      danger
      disabled={typed.trim() !== name}
      onOpen={() => setTyped('')}
      onConfirm={onDelete}
    >
      <p>{explanation} This cannot be undone.</p>
      <TextField label={`Type “${name}” to confirm`} value={typed} maxLength={2048} onChange={setTyped} />
    </DialogButton>
  )
}

export function DeleteCard(props: Omit<DeleteButtonProps, 'label'>) {
  return (
    <Card title={`Delete this ${props.kind}`} actions={<DeleteButton {...props} />}>
      <p>{props.explanation}</p>
    </Card>
  )
}
