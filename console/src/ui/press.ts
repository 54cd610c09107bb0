let isPressed = false
for (const type of ['pointerdown', 'pointerup', 'pointercancel'] as const)
  addEventListener(type, () => (isPressed = type === 'pointerdown'), { capture: true })

/**
 * Runs an action that may move buttons. If the pointer is pressed, waits until it is released,
 * because a button that moves between press and release gets no click.
 */
export function afterPress(action: () => void) {
  if (!isPressed) return action()
  const released = new AbortController()
  for (const type of ['pointerup', 'pointercancel'] as const)
    addEventListener(
      type,
      () => {
        released.abort()
        action()
      },
      { capture: true, signal: released.signal },
    )
}
