// Names of mistakes that the order of messages shows.
#pragma once

#include "property_tests/diagnosis/diagnosis.h"

namespace ringlab::verify {

inline const Suspect kSlotTakenWhileSent{
    "ring.slot_taken_while_sent",
    "a slot takes the next chunk while its last one is still being sent: the wait for that send is "
    "missing"};
inline const Suspect kMemoryTakenWhileSent{
    "network.memory_taken_while_sent",
    "memory that is still being sent is received into: the wait for that send comes too late, or "
    "the memory was given back before it"};
inline const Suspect kChunksInOneSlot{
    "ring.chunks_in_one_slot",
    "the next chunk lands in a slot whose chunk has still to be computed on or passed on"};
inline const Suspect kPartsInOnePlace{
    "network.parts_in_one_place",
    "several parts of what another rank sends are received into one "
    "place: the last one stays there"};
inline const Suspect kKeysSentAsValues{
    "ring.keys_sent_as_values", "the keys of a chunk are sent in the message of its values, too"};
inline const Suspect kPlacesOverlap{"ring.places_overlap",
                                    "the places into which two ranks' rows are received overlap"};
inline const Suspect kComputedBeforeArrival{
    "ring.computed_before_arrival",
    "a chunk is computed on before it has arrived: the wait for it comes later or never"};
inline const Suspect kPassedOnBeforeArrival{
    "ring.passed_on_before_arrival",
    "a chunk is passed on before it has arrived: the wait for it is missing where the rank does "
    "not look at it"};
inline const Suspect kPartAwaited{
    "ring.part_of_a_chunk_awaited",
    "only some of a chunk's messages are waited for: the others may still be on their way when "
    "they are read"};
inline const Suspect kSendsNeverAwaited{
    "ring.sends_never_awaited",
    "the last sends are never waited for: their memory goes away while they are under way"};
inline const Suspect kSentElsewhere{"ring.sent_to_another_rank",
                                    "what one rank waits for is sent to another one"};
inline const Suspect kForeignPositions{"ring.positions_of_another_chunk",
                                       "a chunk is passed on with the positions of another one"};
inline const Suspect kOwnPositions{
    "ring.positions_stay_at_home",
    "a chunk is passed on with the positions of its sender, not with its own"};

}  // namespace ringlab::verify
