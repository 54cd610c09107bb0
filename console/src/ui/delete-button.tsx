import { useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { ActionDialog } from './dialog.tsx'
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
  const [asking, setAsking] = useState(false)
  const [typed, setTyped] = useState('')
  return (
    <>
      <Button
        kind="small"
        aria-label={label}
        onClick={() => {
          setTyped('')
          setAsking(true)
        }}
      >
        Delete
      </Button>
      {asking && (
        <ActionDialog
          title={`Delete ${kind}?`}
          action={`Delete ${kind}`}
          danger
          disabled={typed.trim() !== name}
          onClose={() => setAsking(false)}
          onConfirm={onDelete}
        >
          <p>{explanation} This cannot be undone.</p>
          <TextField
            label={`Type “${name}” to confirm`}
            value={typed}
            maxLength={2048}
            takesFocus
            onChange={setTyped}
          />
        </ActionDialog>
      )}
    </>
  )
}

export function DeleteCard(props: Omit<DeleteButtonProps, 'label'>) {
  return (
    <Card title={`Delete this ${props.kind}`} actions={<DeleteButton {...props} />}>
      <p>{props.explanation}</p>
    </Card>
  )
}
