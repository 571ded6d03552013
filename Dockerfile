# NOT BUILT by us: no machine of ours could. A simulated robot, a server, and a bridge for Foxglove on ROS 2 Jazzy:
#   docker build -t adahi_ros . && docker run --rm -it -p 8765:8765 adahi_ros
# Open ws://localhost:8765 in Foxglove, and import config/foxglove/adahi.json as a layout.
FROM ros:jazzy AS dependencies
SHELL ["/bin/bash", "-c"]
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv ros-jazzy-foxglove-bridge \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /ws
COPY package.xml src/adahi_ros/
COPY adahi_msgs/package.xml src/adahi_ros/adahi_msgs/
COPY adahi_lab/package.xml src/adahi_ros/adahi_lab/
COPY checkpoints/package.xml src/adahi_ros/checkpoints/
COPY requirements src/adahi_ros/requirements
RUN apt-get update && rosdep update --rosdistro jazzy \
    && rosdep install --from-paths src/adahi_ros src/adahi_ros/adahi_msgs src/adahi_ros/adahi_lab src/adahi_ros/checkpoints \
        --ignore-src -r -y \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv --system-site-packages venv && venv/bin/pip install --no-cache-dir \
    -c src/adahi_ros/requirements/constraints.txt -r src/adahi_ros/requirements/robot.txt -r src/adahi_ros/requirements/demo.txt

FROM dependencies
COPY . src/adahi_ros
RUN . /opt/ros/jazzy/setup.bash && . venv/bin/activate \
    && python3 -m colcon build --base-paths src/adahi_ros src/adahi_ros/adahi_msgs src/adahi_ros/adahi_lab src/adahi_ros/checkpoints
CMD . install/setup.bash && . venv/bin/activate \
    && { ros2 launch foxglove_bridge foxglove_bridge_launch.xml & ros2 launch adahi_lab all.launch.py method:=best; }
