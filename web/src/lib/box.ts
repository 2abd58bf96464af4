// What can be done with a sandbox, for every screen that offers it.
import { useQueryClient } from '@tanstack/react-query'
import { type Place, type Sandbox, sandboxPath, send } from '@/lib/api'

export const placeOf = (box: Sandbox): Place => ({ connection: box.connection, sandbox: box.id })
export const nameOf = (box: Pick<Sandbox, 'id' | 'name'>) => box.name || box.id
export const isGone = (box: Sandbox) => Boolean(box.gone_at) || box.state === 'Terminated'

// isRunning tells whether something can be done in a sandbox now.
export const isRunning = (box: Sandbox | undefined) => box !== undefined && box.state === 'Running' && !isGone(box)

export function useBoxActions() {
  const client = useQueryClient()
  const fresh = async () => {
    await Promise.all([client.invalidateQueries({ queryKey: ['sandboxes'] }), client.invalidateQueries({ queryKey: ['sandbox'] })])
  }
  const act = async (method: string, at: Place, path = '', body?: unknown) => {
    try {
      await send(method, sandboxPath(at) + path, body)
    } finally {
      await fresh()
    }
  }
  return {
    pause: (at: Place) => act('POST', at, '/pause'),
    resume: (at: Place) => act('POST', at, '/resume'),
    renew: (at: Place, seconds: number) => act('POST', at, '/renew', { expires_in_seconds: seconds }),
    remove: (at: Place) => act('DELETE', at),
  }
}
