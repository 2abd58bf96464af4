// Starts the built server with a state of its own, for all journeys.
import { bin, clear, newState, serve } from './server'

export async function setup() {
  const state = newState()
  const { base, stop } = await serve(state)
  Object.assign(process.env, { GLASSBOX_BASE: base, GLASSBOX_STATE: state, GLASSBOX: bin }) // the journeys see them
  return async () => {
    await clear(state)
    await stop()
  }
}
