// The lanes of a recording: lanes of the clients' QPs, and lanes of librdmacm's ids. When the
// recording has been read, the lane of an id becomes the lane of the id's QP.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/timeline/model.h"
#include "emulator/timeline/reading/frame_follower.h"

namespace rocemu::timeline {

class RecordedLanes {
 public:
  RecordedLanes(Timeline& timeline, FrameFollower& frames) : timeline_(timeline), frames_(frames) {}

  void attach(uint32_t client, const std::string& device) { clients_[client].device = device; }
  void name(uint32_t client, const std::string& process, uint32_t pid);
  /// Adds a QP. The first QP of a client gets the client's own lane.
  void create_qp(uint64_t client, uint32_t qpn, const std::string& type);
  /// Notes that the id of librdmacm belongs to the QP.
  void set_id_qp(uint32_t id, uint32_t qpn) { id_qpns_[id] = qpn; }

  const std::string& device_of(uint64_t client) {
    return clients_[static_cast<uint32_t>(client)].device;
  }
  /// Calls `found(device)` for each client that has the QP.
  template <class Found>
  void for_each_owner(uint32_t qpn, Found found) const {
    for (const auto& [id, client] : clients_) {
      for (const uint32_t lane : client.lanes) {
        if (timeline_.lanes[lane].qpn == qpn) found(client.device);
      }
    }
  }

  // Returns the client's lane, and creates the lane if necessary, as the functions below also do.
  uint32_t of_client(uint64_t client);
  uint32_t of_qp(uint64_t client, uint64_t qpn);
  /// Returns the lane of the first id of the channel. The other ids of the channel share this lane.
  uint32_t of_channel(uint32_t channel);
  /// Returns the lane of an id of librdmacm. When the recording has been read, it becomes the lane
  /// of the id's QP, if the id has a QP.
  uint32_t of_id(uint32_t channel, uint32_t id);

  /// Moves the happenings of librdmacm's ids to the lanes of the ids' QPs, and removes empty lanes.
  void finish();

 private:
  struct Client {
    std::string process;
    uint32_t pid = 0;
    std::string device;
    std::vector<uint32_t> lanes;
    bool has_qp = false;
  };
  uint32_t add_lane(Client& client);
  void move_to(const std::vector<uint32_t>& into);
  /// Removes the happenings of channels that librdmacm itself opened to look up addresses, because
  /// these calls always succeed.
  void drop_channels_of_librdmacm_itself();
  void drop_unused(std::vector<uint32_t>& into);

  Timeline& timeline_;
  FrameFollower& frames_;
  std::map<uint32_t, Client> clients_;
  std::map<uint32_t, uint32_t> qps_;                       // lanes, by QPN
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids_;  // lanes, by channel and id of librdmacm
  std::map<uint32_t, uint32_t> id_qpns_;
};

}  // namespace rocemu::timeline
